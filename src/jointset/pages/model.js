// The page of a fitted model: its numbers are in the page itself.
const data = JSON.parse(byId("data").textContent);

function numbers(text, kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new kind(bytes.buffer);
}

function stationOf(page) {
  const station = new Station(page, Math.max(1, page.detail.count));
  station.grow(page.count);
  station.count = page.count;
  station.times.set(page.times === null ? new Float64Array(page.count).fill(NaN) : numbers(page.times, Float64Array));
  station.scores.set(numbers(page.scores, Float32Array));
  station.radii.set(numbers(page.radii, Float32Array));
  station.inside.set(numbers(page.inside, Int8Array));
  const held = station.recent;
  Object.assign(held, { first: page.detail.first, count: page.detail.count });
  for (const field of Detail.FIELDS) held[field].set(numbers(page.detail[field], Float32Array));
  station.alarms = page.alarms;
  station.next = ahead(page.next);
  return station;
}

const station = stationOf(data);
const board = new Board(byId("board"), station, { resting: "blame" });
byId("tools").append(themeButton());
addEventListener("themed", () => board.repaint());
Object.assign(board, { trust: data.trust, verdict: data.verdict, words: data.words });
board.ailing = new Map(Object.entries(data.ailing).map(([name, state]) => [station.index.get(name), state]));
board.blame();
board.choose(station.blame.indexOf(Math.max(...station.blame)));
