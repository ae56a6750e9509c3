; Zig.

(function_declaration) @function

(variable_declaration
  (identifier) @variable) @variable
