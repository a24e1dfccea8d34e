import LarkspurIO

/// The listening thread: accepts connections and gives each a thread.
func acceptConnections(_ listener: BlockingListener, _ core: ServerCore) {
  while !core.isStopping {
    do {
      startConnection(try listener.accept(), core)
    } catch .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace {
      // Descriptors come back when anybody in the process closes one, which nobody tells us: look again soon. The
      // connection waits in the kernel's queue meanwhile.
      if !core.pause(until: core.deadline(after: .milliseconds(10))) { return }
    } catch {
      // Shut down by `stop`. Anything else is not to happen, and nothing could be done about it.
      if !core.isStopping { core.fail("the server does not accept connections any more: \(error)") }
      return
    }
  }
}

/// The ledger becomes the socket's only owner: where a script closes it, it is closed.
private func startConnection(_ socket: consuming BlockingSocket, _ core: ServerCore) {
  guard let (number, script) = core.connectionAccepted(socket) else { return }
  let started = core.startThread("test-server-\(number)") { core in
    Connection(number, core).run(script)
    core.connectionClosed()
  }
  if !started {
    core.forgetSocket(number)
    core.connectionClosed()
    core.fail("connection \(number): no thread could be started for it")
  }
}
