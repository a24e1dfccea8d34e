/// A value whose safety the compiler cannot check: blocks of programs that predate the rules for concurrency. The
/// program that sets a block knows on which queue it is called.
struct UncheckedSendable<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
