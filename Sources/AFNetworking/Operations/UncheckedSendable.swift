/// A value whose safety the compiler cannot check: blocks of programs that predate the rules for concurrency. The
/// program chooses the queue on which its blocks are called.
struct UncheckedSendable<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
