/// Carries what the compiler cannot know to be safe: blocks of programs that are older than its rules. Whoever sets a
/// block knows where it will be called.
struct Carried<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
