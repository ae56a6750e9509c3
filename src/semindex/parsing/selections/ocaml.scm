; OCaml, interfaces included.

(module_definition
  (module_binding
    name: (module_name) @module)) @module

(type_definition
  (type_binding
    name: (type_constructor) @type)) @type

(class_definition
  (class_binding
    name: (class_name) @class)) @class

(method_definition
  name: (method_name) @method) @method

(value_definition
  (let_binding
    pattern: (value_name) @value)) @value
