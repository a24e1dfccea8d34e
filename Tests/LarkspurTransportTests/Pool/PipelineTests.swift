import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Requests that follow others before those are answered, over a scripted kernel.
@Suite struct PipelineTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }
  let pool: Pool

  init() throws {
    tests = try PoolTests()
    pool = tests.pool {
      $0.perEndpointMax = 1
      $0.pipelineDepth = 4
    }
  }

  static func response(_ text: String, _ more: String = "") -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\(more)\r\n\(text)"
  }

  /// Makes a connection that has been kept alive once.
  func prove() {
    let first = tests.fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response("first"))
    world.settle()
    #expect(first.value?.body == "first")
  }

  func fetch(_ names: [String], method: String = "GET") -> [Running<Outcome>] {
    names.map { tests.fetch(request(method, "/\($0)"), through: pool) }
  }

  /// Returns the targets of the requests that a peer has received.
  func targets(_ peer: Int = 0) -> [String] {
    kernel.peer(peer).receivedText.split(separator: "\r\n").compactMap {
      $0.hasSuffix(" HTTP/1.1") ? String($0.split(separator: " ")[1]) : nil
    }
  }

  @Test func severalRequestsInOneSendAndSeveralAnswersInOneReceive() {
    prove()
    let before = kernel.counts
    let running = fetch(["a", "b", "c"])
    world.settle()
    // The first request is sent at once, those behind it together.
    #expect(kernel.counts.sends - before.sends == 2)
    #expect(targets() == ["/", "/a", "/b", "/c"])
    kernel.peer().send(["a", "b", "c"].map { Self.response($0) }.joined())
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c"])
    #expect(kernel.counts.receives - before.receives == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// Requests may begin while the responses to others are being read.
  @Test func moreRequestsWhileAnswersArrive() {
    prove()
    let running = fetch(["a", "b", "c", "d", "e", "f", "g"])
    world.settle()
    kernel.peer().send(["a", "b", "c"].map { Self.response($0) }.joined())
    world.settle()
    kernel.peer().send(["d", "e", "f", "g"].map { Self.response($0) }.joined())
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c", "d", "e", "f", "g"])
    #expect(kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// With a pipeline of 16, waiting requests are sent together once fewer than eight are in flight.
  @Test func requestsLeaveInBatches() throws {
    let tests = try PoolTests()
    let pool = tests.pool {
      $0.perEndpointMax = 1
      $0.pipelineDepth = 16
    }
    let proof = tests.fetch(through: pool)
    tests.world.settle()
    tests.kernel.peer().send(Self.response("first"))
    tests.world.settle()
    let running = (0..<32).map { tests.fetch(request("GET", "/\($0)"), through: pool) }
    tests.world.settle()
    let before = tests.kernel.counts.sends
    for index in 0..<16 {
      tests.kernel.peer().send(Self.response("\(index)"))
      tests.world.settle()
    }
    #expect(tests.kernel.counts.sends - before == 1)
    for index in 16..<32 { tests.kernel.peer().send(Self.response("\(index)")) }
    tests.world.settle()
    #expect(running.map { $0.value?.body } == (0..<32).map { "\($0)" })
    #expect(proof.isOver && tests.kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func answersAtEverySplit() throws {
    let answers = Array(
      (Self.response("a") + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nT: x\r\n\r\n"
        + "HTTP/1.1 204 No Content\r\n\r\n" + Self.response("d")).utf8)
    for split in 1..<answers.count {
      let tests = try Self()
      tests.prove()
      let running = tests.fetch(["a", "b", "c", "d"])
      tests.world.settle()
      tests.kernel.peer().send(Array(answers[..<split]), Array(answers[split...]))
      tests.world.settle()
      #expect(running.map { $0.value?.body } == ["a", "b", "", "d"], "split at \(split)")
      #expect(tests.tests.leftovers(of: tests.pool) == [])
    }
  }

  @Test func noDeeperThanAllowed() {
    prove()
    let running = fetch(["a", "b", "c", "d", "e"])
    world.settle()
    #expect(targets() == ["/", "/a", "/b", "/c", "/d"])
    kernel.peer().send(Self.response("a"))
    world.settle()
    #expect(targets() == ["/", "/a", "/b", "/c", "/d", "/e"])
    for name in ["b", "c", "d", "e"] { kernel.peer().send(Self.response(name)) }
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c", "d", "e"])
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func notBeforeTheServerHasKeptTheConnectionOnce() {
    let running = fetch(["a", "b"])
    world.settle()
    #expect(targets() == ["/a"])
    kernel.peer().send(Self.response("a"))
    world.settle()
    #expect(targets() == ["/a", "/b"])
    kernel.peer().send(Self.response("b"))
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b"])
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aPOSTNeitherFollowsNorIsFollowed() {
    prove()
    let get = fetch(["a"])
    world.settle()
    let post = tests.fetch(request("POST", "/post", body: 0), through: pool)
    let behind = fetch(["b"])
    world.settle()
    #expect(targets() == ["/", "/a"])
    kernel.peer().send(Self.response("a"))
    world.settle()
    #expect(targets() == ["/", "/a", "/post"])
    kernel.peer().send(Self.response("post"))
    world.settle()
    #expect(targets() == ["/", "/a", "/post", "/b"])
    kernel.peer().send(Self.response("b"))
    world.settle()
    #expect((get + [post] + behind).map { $0.value?.body } == ["a", "post", "b"])
    #expect(tests.leftovers(of: pool) == [])
  }

  /// If the server answers some requests and closes, the others go to another connection in their order.
  @Test(arguments: ["Connection: close\r\n", ""], [false, true])
  func unansweredRequestsAreSentAgain(field: String, isReset: Bool) {
    prove()
    let running = fetch(["a", "b", "c"])
    world.settle()
    kernel.peer(0).send(Self.response("a", field))
    if isReset { kernel.peer(0).reset() } else { kernel.peer(0).close() }
    world.settle()
    #expect(running[0].value?.body == "a")
    #expect(targets(1) == ["/b"])
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    // The repeated requests are sent one by one, because this server does not support pipelines.
    #expect(targets(1) == ["/b", "/c"])
    kernel.peer(1).send(Self.response("c"))
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c"])
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A response that breaks off or is malformed fails its own request, and no other.
  @Test(arguments: ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
  func aFailureCostsOnlyItsOwnRequest(answer: String) {
    prove()
    let running = fetch(["a", "b"])
    world.settle()
    kernel.peer(0).arrive([.bytesThenEnd(Array(answer.utf8))])
    world.settle()
    #expect(running[0].transportError != nil)
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(running[1].value?.body == "b")
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func cancellingTheFirst() {
    prove()
    let running = fetch(["a", "b"])
    world.settle()
    running[0].cancel()
    world.settle()
    #expect(running[0].transportError == .cancelled)
    #expect(targets(1) == ["/b"])
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(running[1].value?.body == "b")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A cancelled request in the pipeline costs the connection: the response before its own is delivered, and the
  /// request behind it is sent again on another connection.
  @Test func cancellingOneBehind() {
    prove()
    let running = fetch(["a", "b", "c"])
    world.settle()
    running[1].cancel()
    world.settle()
    #expect(running[1].transportError == .cancelled)
    kernel.peer(0).send(["a", "b", "c"].map { Self.response($0) }.joined())
    world.settle()
    #expect(running[0].value?.body == "a")
    #expect(targets(1) == ["/c"])
    kernel.peer(1).send(Self.response("c"))
    world.settle()
    #expect(running[2].value?.body == "c")
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func theDeadlineOfOneBehind() {
    prove()
    let first = tests.fetch(request("GET", "/a"), through: pool)
    let second = tests.fetch(request("GET", "/b"), through: pool, deadline: .milliseconds(500))
    world.settle()
    world.advance(by: .milliseconds(500))
    #expect(second.transportError == .timedOut(.queueing))
    #expect(!first.isOver)
    kernel.peer().send(Self.response("a"))
    world.settle()
    #expect(first.value?.body == "a")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// One more response than there were requests closes the connection.
  @Test func anAnswerTooMany() {
    prove()
    let running = fetch(["a", "b"])
    world.settle()
    kernel.peer().send(["a", "b", "evil"].map { Self.response($0) }.joined())
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b"])
    #expect(!kernel.peer().isOpen)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// Bytes that the kernel does not accept at once are sent later.
  @Test func aKernelWithoutRoom() {
    prove()
    kernel.peer().setSendRoom(10)
    let running = fetch(["a", "b", "c"])
    world.settle()
    kernel.peer().setSendRoom(1000)
    world.settle()
    #expect(targets() == ["/", "/a", "/b", "/c"])
    kernel.peer().send(["a", "b", "c"].map { Self.response($0) }.joined())
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c"])
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func anAnswerThatCannotBeFollowed() {
    prove()
    let running = fetch(["a", "b"])
    world.settle()
    kernel.peer(0).arrive([.bytesThenEnd(Array("HTTP/1.1 200 OK\r\n\r\nto the end".utf8))])
    world.settle()
    #expect(running[0].value?.body == "to the end")
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(running[1].value?.body == "b")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A slow reader finds its response unchanged.
  @Test(arguments: [false, true]) func anAnswerStaysUntilItsTaskHasDoneWithIt(isLate: Bool) {
    prove()
    let (isRead, mayGoOn) = (Shared(false), Event())
    let slow = world.start { [pool] in
      let request = PoolRequest(request("GET", "/slow"))
      try await pool.cancelledWithTask { scope in
        try await pool.exchange(request, with: pool.endpoint(for: PoolTests.route), in: scope) {
          exchange throws(TransportError) in
          let isMore = try await exchange.receiveData { _ in isRead.value = true }
          try? await mayGoOn.wait()
          let isStillMore = try await exchange.receiveData { _ in }
          #expect(isMore && !isStillMore && exchange.status == 200)
        }
      }
    }
    world.settle()
    let early = isLate ? [] : fetch(["next"])
    world.settle()
    kernel.peer().send(Self.response("slow"))
    while !isRead.value { world.tick() }
    let next = early + (isLate ? fetch(["next"]) : [])
    world.tick(3)
    kernel.peer().send(Self.response("next"))
    world.tick(3)
    mayGoOn.fire()
    world.settle()
    #expect(slow.error == nil)
    #expect(next.map { $0.value?.body } == ["next"])
    #expect(kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// The kernel reports an error once, here to the third request, and the end of the stream after that must not count
  /// as the end of a body.
  @Test func anEndBehindAnErrorIsNoBodysEnd() {
    prove()
    let running = fetch(["a", "b"])
    world.settle()
    kernel.peer().willFailToSend(.connectionReset, .brokenPipe)
    var behind = fetch(["c"])
    world.settle()
    behind += fetch(["d"])
    world.settle()
    kernel.peer().send(Self.response("a") + "HTTP/1.1 200 OK\r\n\r\nhalf")
    kernel.peer().close()
    world.settle()
    #expect(running[0].value?.body == "a")
    #expect(running[1].transportError == .connectionLost(.receivingBody, .connectionReset))
    for answer in ["c", "d"] {
      kernel.peer(1).send(Self.response(answer))
      world.settle()
    }
    #expect(behind.map { $0.value?.body } == ["c", "d"])
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A request that the kernel refuses is tried once, and waits behind the one that has left for the connection's end.
  @Test func aRefusedRequestBehindOneThatHasLeft() {
    prove()
    let first = fetch(["a"])
    world.settle()
    kernel.peer().willFailToSend(.connectionReset)
    for _ in 0..<100 { kernel.peer().willFailToSend(.brokenPipe) }
    let before = kernel.counts.sends
    let second = fetch(["b"])
    world.settle()
    kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
    world.settle()
    #expect(kernel.counts.sends - before == 1)
    kernel.peer().send("a")
    kernel.peer().close()
    world.settle()
    #expect(first[0].value?.body == "a")
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(second[0].value?.body == "b")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A response too many does not answer a request that the kernel has refused.
  @Test func anAnswerTooManyForARefusedRequest() {
    prove()
    let first = fetch(["a"])
    world.settle()
    kernel.peer().willFailToSend(.connectionReset)
    let second = fetch(["b"])
    world.settle()
    kernel.peer().send(Self.response("a") + Self.response("none"))
    world.settle()
    #expect(first[0].value?.body == "a")
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(second[0].value?.body == "b")
    #expect(targets() == ["/", "/a"])
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A request that the server has refused before all of it had left is cut off: nothing follows it on its connection.
  @Test func nothingFollowsACutRequest() {
    prove()
    kernel.peer().setSendRoom(10)
    let first = fetch(["a"])
    world.settle()
    kernel.peer().send("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n")
    world.settle()
    let second = fetch(["b"])
    world.settle()
    kernel.peer().setSendRoom(1000)
    world.settle()
    #expect(targets() == ["/"])
    kernel.peer().send("none")
    world.settle()
    #expect(first[0].value?.body == "none")
    kernel.peer(1).send(Self.response("b"))
    world.settle()
    #expect(second[0].value?.body == "b")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A fifth request that joins the pipeline while responses are being read does not make an earlier response
  /// unfinished.
  @Test func aRequestBehindDoesNotMakeOneBeforeItUnfinished() {
    prove()
    let running = fetch(["a", "b", "c", "d", "e"])
    world.settle()
    kernel.peer().send(["a", "b", "c", "d"].map { Self.response($0) }.joined())
    world.settle()
    #expect(targets() == ["/", "/a", "/b", "/c", "/d", "/e"])
    kernel.peer().send(Self.response("e"))
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c", "d", "e"])
    #expect(kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// The fifth request takes the first one's slot when the stray response has already arrived, which therefore does not
  /// answer it.
  @Test func whatWasThereBeforeARequestLeftDoesNotAnswerIt() {
    prove()
    let running = fetch(["a", "b", "c", "d", "e"])
    world.settle()
    #expect(targets() == ["/", "/a", "/b", "/c", "/d"])
    kernel.peer().send(["a", "b", "c", "d", "stray"].map { Self.response($0) }.joined())
    world.settle()
    kernel.peer(1).send(Self.response("e"))
    world.settle()
    #expect(running.map { $0.value?.body } == ["a", "b", "c", "d", "e"])
    #expect(!kernel.peer().isOpen)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A request for a proxy, which may carry the proxy's credentials, does not follow another request to an origin.
  @Test func whatIsForAProxyDoesNotFollow() throws {
    prove()
    let first = fetch(["a"])
    world.settle()
    let head = try RequestWriter(method: "GET", target: "http://a.example/", host: "a.example", to: .proxy).finish()
    let second = tests.fetch(head, through: pool)
    world.settle()
    #expect(second.transportError == .localMisuse(.recipientWrong))
    #expect(targets() == ["/", "/a"])
    kernel.peer().send(Self.response("a"))
    world.settle()
    #expect(first[0].value?.body == "a")
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aRequestWithABodyDoesNotFollow() throws {
    for body in [RequestWriter.Body.chunked, .length(4)] {
      let head = try RequestWriter(method: "GET", target: "/", host: "a.example").finish(body: body)
      #expect(!head.isPipelinable)
    }
    #expect(request().isPipelinable)
  }
}
