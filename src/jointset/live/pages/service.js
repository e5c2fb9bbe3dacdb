// What the service is asked, and what it answers: the token, columns of rows, and a socket that comes back.
const service = {
  get token() {
    return sessionStorage.getItem("token") || "";
  },

  async ask(path, method = "GET") {
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    const answer = await fetch(path, { method, headers });
    if (answer.status === 401) throw new Unknown("a token is needed");
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || `${path}: ${answer.status}`);
    return answer;
  },

  async json(path) {
    return (await this.ask(path)).json();
  },

  post(path) {
    return this.ask(path, "POST");
  },

  async columns(name, asked) {
    const query = new URLSearchParams(asked);
    return unpacked(await (await this.ask(`/${name}/columns?${query}`)).arrayBuffer());
  },

  socket(name, after) {
    const address = new URL(`/${name}/live?after=${after}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    return this.token ? new WebSocket(address, [`bearer.${this.token}`]) : new WebSocket(address);
  },
};

class Unknown extends Error {}

function unpacked(buffer) {
  // rows, sensors; then column after column, single readings last but for the outcomes
  const [rows, sensors] = new Uint32Array(buffer, 0, 2);
  let at = 8;
  const take = (kind, count) => {
    const found = new kind(buffer, at, count);
    at += found.byteLength;
    return found;
  };
  const found = { rows, numbers: take(Float64Array, rows), times: take(Float64Array, rows), scores: take(Float32Array, rows), radii: take(Float32Array, rows) };
  found.detail = sensors ? Object.fromEntries(Detail.FIELDS.map((field) => [field, take(Float32Array, rows * sensors)])) : null;
  found.inside = take(Int8Array, rows);
  return found;
}

class Line {
  // a socket to a network that is opened again when it breaks, from the row that was heard last
  constructor(name, after, { heard, state }) {
    Object.assign(this, { name, after, heard, state, wait: 500, done: false });
    this.open();
  }

  open() {
    this.state("connecting");
    this.socket = service.socket(this.name, this.after());
    this.socket.onmessage = (event) => {
      this.wait = 500;
      this.heard(JSON.parse(event.data));
    };
    this.socket.onopen = () => this.state("live");
    this.socket.onclose = () => {
      if (this.done) return;
      this.state("lost");
      this.timer = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, 5000);
    };
  }

  close() {
    this.done = true;
    clearTimeout(this.timer);
    this.socket.close();
  }
}
