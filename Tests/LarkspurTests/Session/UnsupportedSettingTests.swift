import Foundation
import Larkspur
import Testing

/// Tests settings of other platforms that have no effect here: a value that was set is read back, in copies, too.
@Suite struct UnsupportedSettingTests {
  @Test func ofRequests() throws {
    var request = URLRequest(url: try #require(URL(string: "http://a.example/")))
    #expect(request.attribution == .developer)
    #expect(!request.requiresDNSSECValidation && !request.allowsPersistentDNS && !request.assumesHTTP3Capable)
    #expect(request.cookiePartitionIdentifier == nil)
    let before = request
    request.attribution = .user
    request.requiresDNSSECValidation = true
    request.allowsPersistentDNS = true
    request.assumesHTTP3Capable = true
    request.cookiePartitionIdentifier = "x"
    #expect(before.attribution == .developer && before.cookiePartitionIdentifier == nil)
    let object = request as NSURLRequest
    #expect(object.attribution == .user && object.requiresDNSSECValidation && object.allowsPersistentDNS)
    #expect(object.assumesHTTP3Capable && object.cookiePartitionIdentifier == "x")
    let mutable = try #require(object.mutableCopy() as? NSMutableURLRequest)
    mutable.attribution = .developer
    mutable.requiresDNSSECValidation = false
    mutable.allowsPersistentDNS = false
    mutable.assumesHTTP3Capable = false
    mutable.cookiePartitionIdentifier = nil
    #expect(mutable as URLRequest == before)
    #expect(object.attribution == .user)
  }

  @Test func ofConfigurations() throws {
    let configuration = URLSessionConfiguration.ephemeral
    #expect(!configuration.requiresDNSSECValidation)
    configuration.requiresDNSSECValidation = true
    let copy = URLSession(configuration: configuration).configuration
    #expect(copy.requiresDNSSECValidation)
    #expect(copy.usesClassicLoadingMode && !copy.enablesEarlyData)
    configuration.usesClassicLoadingMode = false
    configuration.enablesEarlyData = true
    let other = URLSession(configuration: configuration).configuration
    #expect(!other.usesClassicLoadingMode && other.enablesEarlyData)
    #expect(copy.usesClassicLoadingMode && !copy.enablesEarlyData)
  }

  /// The older names of TLS versions set the same property as the newer ones.
  @Test func olderNamesOfVersions() {
    let configuration = URLSessionConfiguration.ephemeral
    #expect(configuration.tlsMinimumSupportedProtocol == .tlsProtocol12)
    #expect(configuration.tlsMaximumSupportedProtocol == .tlsProtocol13)
    for (old, new) in [
      (.tlsProtocol1, .TLSv10), (.tlsProtocol11, .TLSv11), (.tlsProtocol12, .TLSv12), (.tlsProtocol13, .TLSv13),
      (.dtlsProtocol1, .DTLSv10), (.dtlsProtocol12, .DTLSv12),
    ] as [(SSLProtocol, tls_protocol_version_t)] {
      configuration.tlsMinimumSupportedProtocol = old
      configuration.tlsMaximumSupportedProtocol = old
      #expect(
        configuration.tlsMinimumSupportedProtocolVersion == new && configuration.tlsMinimumSupportedProtocol == old)
      #expect(
        configuration.tlsMaximumSupportedProtocolVersion == new && configuration.tlsMaximumSupportedProtocol == old)
    }
    // Names without a version mean no limit, and unsupported versions map to the nearest supported one.
    for (old, minimum, maximum) in [
      (.sslProtocolUnknown, .TLSv12, .TLSv13), (.sslProtocolAll, .TLSv12, .TLSv13),
      (.tlsProtocolMaxSupported, .TLSv13, .TLSv13), (.sslProtocol2, .TLSv10, .TLSv10),
      (.sslProtocol3, .TLSv10, .TLSv10), (.sslProtocol3Only, .TLSv10, .TLSv10), (.tlsProtocol1Only, .TLSv10, .TLSv10),
    ] as [(SSLProtocol, tls_protocol_version_t, tls_protocol_version_t)] {
      configuration.tlsMinimumSupportedProtocol = old
      configuration.tlsMaximumSupportedProtocol = old
      #expect(configuration.tlsMinimumSupportedProtocolVersion == minimum)
      #expect(configuration.tlsMaximumSupportedProtocolVersion == maximum)
    }
    #expect(SSLProtocol(rawValue: 8) == .tlsProtocol12 && SSLProtocol(rawValue: 10) == .tlsProtocol13)
  }

  @Test func ofTasks() throws {
    let session = URLSession(configuration: .ephemeral)
    let url = try #require(URL(string: "http://a.example/"))
    let task = session.dataTask(with: url)
    #expect(task.prefersIncrementalDelivery)
    #expect(!session.dataTask(with: url) { _, _, _ in }.prefersIncrementalDelivery)
    #expect(!session.downloadTask(with: url).prefersIncrementalDelivery)
    task.prefersIncrementalDelivery = false
    #expect(!task.prefersIncrementalDelivery)
    task.cancel()
  }
}
