; Ruby. `program` selects the whole file.

(method
  name: (identifier) @method) @method

(singleton_method
  object: (_)
  name: (identifier) @singleton_method) @singleton_method

(alias
  name: (_) @alias) @alias

(class
  name: [
    (constant) @class
    (scope_resolution
      name: (_) @class)
  ]) @class

(singleton_class
  value: [
    (constant) @singleton_name
    (scope_resolution
      name: (_) @singleton_name)
  ])

(module
  name: [
    (constant) @module
    (scope_resolution
      name: (_) @module)
  ]) @module

(assignment
  left: (constant) @constant) @constant

(global_variable) @global_variable

(instance_variable) @instance_variable

(class_variable) @class_variable

(simple_symbol) @symbol

(hash_key_symbol) @hash_key

(block) @block

(do_block) @do_block

(call
  method: (identifier) @_method
  arguments: (argument_list
    (constant) @mixin)
  (#text-matches? @_method "^(include|extend|prepend)$")) @mixin

(singleton_class) @singleton_class

(call
  method: (identifier) @_method
  arguments: (argument_list
    (_) @attribute)
  (#text-matches? @_method "^(attr_accessor|attr_reader|attr_writer)$")) @attribute

(call
  method: (identifier) @_method
  arguments: (argument_list
    (_) @macro)
  (#text-matches?
    @_method
    "^(has_many|belongs_to|has_one|validates|scope|before_action|after_action)$")) @macro

(begin) @begin

(rescue) @rescue

(ensure) @ensure

(keyword_parameter
  name: (identifier) @keyword_parameter) @keyword_parameter

(splat_parameter) @splat_parameter

(splat_argument) @splat_argument

(pair
  key: (_) @pair) @pair

(assignment
  left: (identifier) @interpolated
  right: (string
    (interpolation))) @interpolated

(assignment
  left: (identifier) @regex
  right: (regex)) @regex

(case_match) @case_match

(in_clause
  pattern: (hash_pattern)) @hash_pattern

(comment) @comment

(in_clause
  pattern: (variable_reference_pattern)) @variable_pattern

(hash
  (pair
    (hash_key_symbol)
    ":")) @hash

(program) @program

(method) @any_method
