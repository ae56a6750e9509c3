; C++. The order is the reference's: several forms of a function stand apart because others come between them.

(struct_specifier
  name: (type_identifier) @struct) @struct

(union_specifier
  name: (type_identifier) @union) @union

(declaration
  type: (_)
  declarator: (function_declarator
    declarator: (identifier) @prototype)) @prototype

(function_definition
  type: (_)
  declarator: (function_declarator
    declarator: (identifier) @typed_function)) @typed_function

(function_definition
  declarator: (function_declarator
    declarator: (field_identifier) @method)) @method

(type_definition
  type: (_)
  declarator: (type_identifier) @typedef) @typedef

(class_specifier
  name: (type_identifier) @class) @class

(enum_specifier
  name: (type_identifier) @enum) @enum

(namespace_definition
  name: (namespace_identifier) @namespace) @namespace

; Also anonymous namespaces, if they hold a named one.
(namespace_definition
  body: (declaration_list
    (namespace_definition
      name: (namespace_identifier)))) @outer_namespace

(template_declaration
  parameters: (template_parameter_list)
  (class_specifier
    name: (type_identifier))) @template

(preproc_function_def
  name: (identifier) @function_macro) @function_macro

(declaration
  type: (_)
  declarator: (init_declarator
    declarator: (identifier) @initialised)) @initialised

(function_definition
  declarator: (function_declarator
    declarator: (identifier) @function)) @function

(function_definition
  declarator: (function_declarator
    declarator: (destructor_name) @destructor)) @destructor

(function_definition
  declarator: (function_declarator
    declarator: (operator_name) @operator)) @operator

(friend_declaration) @friend

(using_declaration) @using
