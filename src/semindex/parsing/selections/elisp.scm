; Emacs Lisp.

(function_definition
  name: (symbol) @function) @function

(macro_definition
  name: (symbol) @macro) @macro

(list
  .
  (symbol) @_form
  .
  (symbol) @definition
  (#text-matches? @_form "^(defcustom|defface|defgroup|defadvice)$")) @definition
