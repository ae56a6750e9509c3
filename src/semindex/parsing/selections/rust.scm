; Rust.

(function_item
  name: (identifier) @function) @function

(struct_item
  name: (type_identifier) @struct) @struct

(enum_item
  name: (type_identifier) @enum) @enum

(trait_item
  name: (type_identifier) @trait) @trait

(impl_item
  type: (type_identifier) @impl) @impl

(impl_item
  trait: (type_identifier) @impl_trait
  type: (type_identifier))

(mod_item
  name: (identifier) @mod) @mod

(macro_definition
  name: (identifier) @macro) @macro

(attribute_item
  (attribute) @attribute) @attribute

(type_item
  name: (type_identifier) @type) @type

(const_item
  name: (identifier) @const) @const

(static_item
  name: (identifier) @static) @static

; Any implementation that has a function, whatever its type looks like.
(impl_item
  body: (declaration_list
    (function_item
      name: (identifier)))) @impl_with_function

(use_declaration) @use

(lifetime
  (identifier) @lifetime) @lifetime

(where_clause) @where

(match_expression
  value: (_) @match
  body: (match_block)) @match

(unsafe_block) @unsafe
