; Kotlin. A `fun interface`, which the reference cannot parse, is left out in adaptations.py.

(type_alias
  (type_identifier) @alias) @alias

(class_declaration
  (type_identifier) @class) @class

(function_declaration
  (simple_identifier) @function) @function

(object_declaration
  (type_identifier) @object) @object

(companion_object) @companion

(class_declaration
  (primary_constructor) @primary_constructor)

(secondary_constructor) @secondary_constructor

(property_declaration
  (variable_declaration
    (simple_identifier) @property)) @property

(property_declaration
  (variable_declaration
    (simple_identifier))
  [(getter) (setter)] @accessor)
