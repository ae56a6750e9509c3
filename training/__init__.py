"""How the embedded model was made: data, vocabulary, training, quantising, evaluation. Not part of the package."""
