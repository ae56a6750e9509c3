"""Values only: identifiers, chunks, points, statuses, errors. Imports attrs and the standard library, nothing else."""
