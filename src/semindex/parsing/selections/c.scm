; C, and every .h file. Bodies of functions are not selected; declarations are, wherever they stand.

(function_definition
  declarator: (function_declarator
    declarator: (identifier) @defined))

(declaration) @declaration

(declaration
  declarator: (function_declarator
    declarator: (identifier) @declaration))

(function_declarator
  declarator: (identifier) @function) @function

(struct_specifier
  name: (type_identifier) @struct) @struct

(union_specifier
  name: (type_identifier) @union) @union

(enum_specifier
  name: (type_identifier) @enum) @enum

(type_definition
  declarator: (type_identifier) @typedef) @typedef

(declaration
  type: (_)
  declarator: (identifier) @variable)

(declaration
  type: (_)
  declarator: (init_declarator
    declarator: (identifier) @initialised))

(preproc_def
  name: (identifier) @macro) @macro

(preproc_function_def
  name: (identifier) @function_macro) @function_macro
