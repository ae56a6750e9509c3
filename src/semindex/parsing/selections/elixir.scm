; Elixir. Definitions are calls; their argument lists are selected for themselves, since long ones are chunks.

(call
  target: (identifier) @_name
  (arguments) @definition
  (#text-matches? @_name "^(defmodule|defprotocol|defimpl|def|defmacro|defguard|for)$")) @definition

(call
  target: (identifier) @_name
  (arguments
    (list))
  (#text-is? @_name "defstruct")) @struct

(sigil
  (sigil_name)
  (quoted_content)) @sigil

(unary_operator
  operator: "@"
  operand: (call)) @attribute

(call
  target: (identifier) @_name
  (arguments
    (string)
    (map))
  (#text-is? @_name "test")) @test
