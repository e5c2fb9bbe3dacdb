"""How the residuals of a mean model spread: one covariance, a moving one, one for the moment, or several components.

A **shape** is fitted on the residuals of a pilot block and then gives the law of every step.
`jointset.filters.residual` makes a filter of a mean model and a shape.
"""
