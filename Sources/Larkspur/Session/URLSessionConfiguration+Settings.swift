import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers
import LarkspurTransport

extension URLSessionConfiguration {
  /// The settings that are plain values. They travel to the runner of a background session as they are
  /// (`SessionSettings`): a new field needs a new `SessionSettings.version`, and nothing else there.
  ///
  /// Every value that can be decoded is valid: the parts that use a number replace one that is out of range.
  struct Settings: Codable {
    @RawSetting var requestCachePolicy = URLRequest.CachePolicy.useProtocolCachePolicy
    var timeoutIntervalForRequest = Self.timeoutForRequestDefault
    var timeoutIntervalForResource = Self.timeoutForResourceDefault
    /// How long opening a connection may take, in seconds, or `nil` for the session's own limit.
    var timeoutForConnection: TimeInterval?
    @RawSetting var networkServiceType = URLRequest.NetworkServiceType.default
    var allowsCellularAccess = true
    var allowsExpensiveNetworkAccess = true
    var allowsConstrainedNetworkAccess = true
    var allowsUltraConstrainedNetworkAccess = false
    var waitsForConnectivity = false
    var isDiscretionary = false
    var sharedContainerIdentifier: String?
    var sessionSendsLaunchEvents = false
    @RawSetting var tlsMinimum = tls_protocol_version_t.TLSv12
    @RawSetting var tlsMaximum = tls_protocol_version_t.TLSv13
    var shouldUsePipelining = false
    var shouldSetCookies = true
    /// The accept policy, or `nil` for the policy of the cookie storage.
    var cookieAcceptPolicy: RawSetting<HTTPCookie.AcceptPolicy>?
    var maximumConnectionsPerHost = 6
    var shouldUseExtendedBackgroundIdleMode = false
    var requiresDNSSECValidation = false
    @RawSetting var multipathServiceType = MultipathServiceType.none
    var usesClassicLoadingMode = true
    var enablesEarlyData = false
    /// The version of resumable uploads, or `nil` for none.
    var resumableUploadVersion: ResumableUploadVersion? = .interop8
    var hostOverrides = HostOverrides()
    var timeouts = Timeouts()
    var localEndpoint: LocalEndpoint?
    var rateLimits = RateLimits()
    /// How download tasks load their files in segments, or `nil` if each makes one request.
    var segmentedDownloads: SegmentedDownloads?

    private static let timeoutForRequestDefault: TimeInterval = 60
    private static let timeoutForResourceDefault: TimeInterval = 7 * 24 * 60 * 60

    /// The timeouts that apply, in seconds: the defaults replace values that are not positive.
    var timeoutForRequest: TimeInterval { timeoutIntervalForRequest.asTimeout ?? Self.timeoutForRequestDefault }
    var timeoutForResource: TimeInterval { timeoutIntervalForResource.asTimeout ?? Self.timeoutForResourceDefault }
  }
}

/// A setting that is written as its raw value. Conformances of the public types to `Codable` would be public, too.
@propertyWrapper struct RawSetting<Value: RawRepresentable>: Codable where Value.RawValue: Codable {
  var wrappedValue: Value

  init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

  /// - Throws: `TransferValueError.damaged` for a raw value that this version does not know.
  init(from decoder: any Decoder) throws {
    let raw = try Value.RawValue(from: decoder)
    guard let value = Value(rawValue: raw) else {
      throw TransferValueError.damaged("a setting has the value \(raw), which is not known")
    }
    wrappedValue = value
  }

  func encode(to encoder: any Encoder) throws { try wrappedValue.rawValue.encode(to: encoder) }
}
