import LarkspurHTTP
import TestKit
import Testing

/// The jar agrees with a list that is searched by the letter of the specification.
@Suite struct CookieModelTests {
  struct Model {
    struct Entry {
      var cookie: Cookie
      var number: Int
    }

    var limits: CookieLimits
    var entries: [Entry] = []
    var numbers = 0
    let suffixes: Set<String> = ["com", "co.uk", "uk", "org"]

    func domainMatches(_ host: String, _ domain: String) -> Bool {
      host == domain || host.hasSuffix("." + domain) && host.last?.isNumber == false
    }

    func pathMatches(_ path: String, _ cookiePath: String) -> Bool {
      path == cookiePath || path.hasPrefix(cookiePath) && cookiePath.hasSuffix("/") || path.hasPrefix(cookiePath + "/")
    }

    mutating func receive(_ said: SetCookie, _ request: CookieRequest, _ now: CookieTime) {
      removeExpired(now)
      let host = request.host.text
      var domain: String?
      switch said.domain {
      case .absent: break
      case .invalid: return
      case .named(let name):
        domain = name
        if suffixes.contains(name) {
          guard name == host else { return }
          domain = nil
        }
      }
      if let domain, !domainMatches(host, domain) { return }
      if domain == host, host.last?.isNumber == true { domain = nil }
      var path = said.path ?? ""
      if path.isEmpty {
        let folder = request.path.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        path = folder.count < 2 ? "/" : folder.joined(separator: "/")
      }
      var cookie = Cookie(
        name: said.name, value: said.value, domain: domain ?? host, path: path, isHostOnly: domain == nil,
        isSecure: said.isSecure, isHTTPOnly: said.isHTTPOnly, sameSite: said.sameSite, creation: now)
      cookie.expiry = said.maxAge.map { $0 <= 0 ? .earliest : now.adding(seconds: Double($0)) }
      if !request.isSecure {
        if cookie.isSecure { return }
        let isShadowing = entries.contains {
          $0.cookie.name == cookie.name && $0.cookie.isSecure && pathMatches(path, $0.cookie.path)
            && (domainMatches($0.cookie.domain, cookie.domain) || domainMatches(cookie.domain, $0.cookie.domain))
        }
        if isShadowing { return }
      }
      if cookie.sameSite == .lax || cookie.sameSite == .strict, !request.isSameSite, !request.isTopLevel { return }
      if cookie.sameSite == .none, !cookie.isSecure { return }
      let lower = cookie.name.lowercased()
      if lower.hasPrefix("__secure-"), !cookie.isSecure { return }
      if lower.hasPrefix("__host-"), !(cookie.isSecure && cookie.isHostOnly && said.path == "/") { return }
      var number = numbers
      numbers += 1
      if let index = entries.firstIndex(where: { $0.cookie.identity == cookie.identity }) {
        cookie.creation = entries[index].cookie.creation
        number = entries[index].number
        entries.remove(at: index)
      }
      if cookie.hasExpired(at: now) { return }
      entries.append(Entry(cookie: cookie, number: number))
      makeRoom(cookie.domain)
    }

    mutating func removeExpired(_ now: CookieTime) { entries.removeAll { $0.cookie.hasExpired(at: now) } }

    mutating func makeRoom(_ domain: String) {
      while crowd(domain) > limits.perDomainMax { evict { $0.domain == domain } }
      while entries.count > limits.totalMax {
        let crowded = Set(entries.map(\.cookie.domain).filter { crowd($0) > limits.fairShare })
        if crowded.isEmpty {
          evict(plainFirst: false) { _ in true }
        } else {
          evict { crowded.contains($0.domain) }
        }
      }
    }

    func crowd(_ domain: String) -> Int { entries.count { $0.cookie.domain == domain } }

    mutating func evict(plainFirst: Bool = true, _ belongs: (Cookie) -> Bool) {
      let all = entries.indices.filter { belongs(entries[$0].cookie) }
      let plain = all.filter { !entries[$0].cookie.isSecure }
      let candidates = plain.isEmpty || !plainFirst ? all : plain
      let index = candidates.min {
        (entries[$0].cookie.lastAccess, entries[$0].number) < (entries[$1].cookie.lastAccess, entries[$1].number)
      }
      if let index { entries.remove(at: index) }
    }

    mutating func field(_ request: CookieRequest, _ now: CookieTime) -> String? {
      let host = request.host.text
      removeExpired(now)
      var chosen: [Entry] = []
      for index in entries.indices {
        let cookie = entries[index].cookie
        guard cookie.isHostOnly ? cookie.domain == host : domainMatches(host, cookie.domain) else { continue }
        guard pathMatches(request.path, cookie.path), !cookie.isSecure || request.isSecure else { continue }
        let isFree = cookie.sameSite == .none || cookie.sameSite == .unspecified
        let isSeen = cookie.sameSite == .lax && request.isSafeMethod && request.isTopLevel
        guard request.isSameSite || isFree || isSeen else { continue }
        entries[index].cookie.lastAccess = now
        chosen.append(entries[index])
      }
      chosen.sort {
        let counts = ($0.cookie.path.utf8.count, $1.cookie.path.utf8.count)
        if counts.0 != counts.1 { return counts.0 > counts.1 }
        return ($0.cookie.creation, $0.number) < ($1.cookie.creation, $1.number)
      }
      return chosen.isEmpty ? nil : chosen.map { "\($0.cookie.name)=\($0.cookie.value)" }.joined(separator: "; ")
    }
  }

  static let hosts = ["a.com", "www.a.com", "b.co.uk", "x.b.co.uk", "co.uk", "10.0.0.1", "c.org", "com"]
  static let paths = ["/", "/p", "/p/", "/p/q", "/pq", "/p/q/r"]

  static func field(_ generator: inout SeededGenerator) -> String {
    let names = ["a", "b", "c", "__Secure-a", "__Host-a", "é"]
    var field = (names.randomElement(using: &generator) ?? "a") + "=\(Int.random(in: 0...9, using: &generator))"
    for _ in 0..<Int.random(in: 0...4, using: &generator) {
      switch Int.random(in: 0..<7, using: &generator) {
      case 0: field += "; Secure"
      case 1: field += "; Path=" + (paths.randomElement(using: &generator) ?? "/")
      case 2: field += "; Domain=" + (hosts.randomElement(using: &generator) ?? "a.com")
      case 3: field += "; Max-Age=\(Int.random(in: -1...20, using: &generator))"
      case 4: field += "; SameSite=" + (["Lax", "Strict", "None", "?"].randomElement(using: &generator) ?? "Lax")
      case 5: field += "; Domain=.a.com"
      default: field += "; HttpOnly"
      }
    }
    return field
  }

  @Test func theJarDoesAsTheModel() throws {
    var generator = SeededGenerator(for: "cookie jars")
    for _ in 0..<60 {
      var limits = CookieLimits()
      limits.perDomainMax = Int.random(in: 1...5, using: &generator)
      limits.totalMax = Int.random(in: 2...12, using: &generator)
      limits.fairShare = Int.random(in: 0...3, using: &generator)
      var jar = CookieJar(limits: limits)
      var model = Model(limits: limits)
      var now = CookieTime(seconds: 0)
      for _ in 0..<150 {
        now = now.adding(seconds: Double(Int.random(in: 0...3, using: &generator)))
        let host = try #require(CookieHost(Self.hosts.randomElement(using: &generator) ?? ""))
        let path = Self.paths.randomElement(using: &generator) ?? "/"
        var request = CookieRequest(host: host, path: path, isSecure: .random(using: &generator))
        if Int.random(in: 0..<4, using: &generator) == 0 {
          request.isSameSite = false
          request.isSafeMethod = .random(using: &generator)
          request.isTopLevel = .random(using: &generator)
        }
        if Bool.random(using: &generator) {
          let field = Self.field(&generator)
          let said = try #require(SetCookie(field))
          _ = jar.receive(said, from: request, now: now) { model.suffixes.contains($0) }
          model.receive(said, request, now)
        } else {
          #expect(jar.field(for: request, now: now) == model.field(request, now))
        }
        let kept = jar.all(at: now).map(\.identity)
        let expected = model.entries.filter { !$0.cookie.hasExpired(at: now) }
          .sorted { ($0.cookie.creation, $0.number) < ($1.cookie.creation, $1.number) }.map(\.cookie.identity)
        try #require(kept == expected)
      }
    }
  }
}
