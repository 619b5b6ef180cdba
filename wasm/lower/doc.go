// Package lower removes WebAssembly exception handling from a module.
//
// What comes out uses WebAssembly 2.0 only and does the same; wazero's own
// support for exceptions stays off, because it loses locals and copies the
// stack at every try_table. The scheme:
//
//   - An exception in flight is a set of globals behind those of the module: the
//     number of its tag plus one, zero when there is none, and the values that it
//     carries. A throw fills them and branches to the dispatch of the nearest
//     try_table, or out of the function, which then gives zeros.
//   - After each call that may throw, by a fixpoint over the call graph, the tag
//     is read, and if it is set the code branches in the same way. All other
//     code stays as it is, byte for byte.
//   - A dispatch compares the tag with those of its clauses, leaving out what
//     cannot arrive there, clears it, and branches to the label of the clause
//     with the values.
//   - An exnref is a value, not a handle: it cannot be compared, so a copy is as
//     good as the original, and nothing has to be kept or freed elsewhere. With
//     tags that carry at most one value of 32 bits, which is all that C++ has, it
//     is one i64: tag above, value below. Otherwise it is as many values as the
//     widest exception that a clause with a reference can catch; parameters,
//     results, locals, globals and labels of that type become several.
//   - Code that cannot be reached is left out of the functions that change, so
//     that the type of every operand is known.
//
// Host functions throw nothing. When an exported function came back by an
// exception, the global that is exported as [Export] is not zero; the instance
// must not be used then.
//
// Refused, as a [check.Error]: imported tags, tables of exnref, tags that carry
// an exnref, and references to exceptions that carry very many values.
package lower
