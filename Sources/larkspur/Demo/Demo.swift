import LarkspurTransport

struct Demo {
  init(on loop: ClientLoop) {}
  func run() async -> ExitStatus { .success }
}
