"""What users write: coordinates, inputs, params, Funcs, reductions, boundary conditions and math."""
