/// A value whose safety the compiler cannot check: one that only one thread uses at a time, or a block of a program that
/// chooses the queue on which its blocks are called.
package struct UncheckedSendable<Value>: @unchecked Sendable {
  package let value: Value

  package init(_ value: Value) { self.value = value }
}
