import Foundation
import LarkspurTLS
import Testing

/// Keys and archives that use algorithms which OpenSSL has moved to its legacy provider. A right password fails, too.
@Suite struct OldEncryptionTests {
  @Test(
    arguments: [desInPKCS8, rc2InPKCS8, desInPEM, desInPEM.replacing("DES-CBC", with: "NO-SUCH-CIPHER")],
    ["open", "wrong"])
  func keys(key: String, password: String) {
    let problem = problem {
      try ClientIdentity(certificates: Array(Self.certificate.utf8), key: Array(key.utf8), password: password)
    }
    #expect(problem == .encryptionUnsupported)
  }

  /// OpenSSL limits the memory of scrypt to 32 MiB (RFC 7914, section 2: 128 * N * r bytes). A key that needs more is
  /// unsupported, although it may be valid; an N that is no power of two is invalid, and reported alike.
  @Test(arguments: [("AQgCAQEw", "AUACAQEw"), ("QAAC", "QAEC")]) func costs(good: String, bad: String) {
    let key = Self.scryptInPKCS8.replacing(good, with: bad)
    #expect(key != Self.scryptInPKCS8)
    let problem = problem {
      try ClientIdentity(certificates: Array(Self.certificate.utf8), key: Array(key.utf8), password: "open")
    }
    #expect(problem == .encryptionUnsupported)
  }

  @Test func aCostThatIsPaid() throws {
    _ = try ClientIdentity(
      certificates: Array(Self.certificate.utf8), key: Array(Self.scryptInPKCS8.utf8), password: "open")
  }

  /// The digest of an archive is checked first. Where the digest is not available, OpenSSL reports a wrong password,
  /// too.
  @Test func archives() throws {
    for (archive, password, expected) in [
      (Self.rc2Archive, "open", TLSError.Problem.encryptionUnsupported), (Self.rc2Archive, "wrong", .passwordWrong),
      (Self.md4Archive, "open", .encryptionUnsupported), (Self.md4Archive, "wrong", .encryptionUnsupported),
    ] {
      let bytes = Array(try #require(Data(base64Encoded: archive, options: .ignoreUnknownCharacters)))
      #expect(problem { try ClientIdentity(pkcs12: bytes, password: password) } == expected)
    }
  }

  /// The unencrypted key loads, so that the failures in the other tests come from the encryption.
  @Test func theKeyInTheOpen() throws {
    _ = try ClientIdentity(certificates: Array(Self.certificate.utf8), key: Array(Self.key.utf8))
  }

  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBbDCCAROgAwIBAgIUMqKXptAPeEjJxND0K69DX6E9o70wCgYIKoZIzj0EAwIw
    DDEKMAgGA1UEAwwBYTAeFw0yNjExMjYwMTE1MzBaFw0yNjEyMjYwMTE1MzBaMAwx
    CjAIBgNVBAMMAWEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASrzs5Qr5Ti43CM
    it3GZZntRkatY54xURY7CUu1h8ZASz+psLSKieOBdwlbVf/+lG1ZIEmLU5S+6fvI
    WXVO3yWYo1MwUTAdBgNVHQ4EFgQUmaL7VVWHIOJ++EvtNTu+0+eyx3owHwYDVR0j
    BBgwFoAUmaL7VVWHIOJ++EvtNTu+0+eyx3owDwYDVR0TAQH/BAUwAwEB/zAKBggq
    hkjOPQQDAgNHADBEAiBjdVO6gUgeyYPXC9yrx5EUFQ7L5Xw8NlP4Obo4fPCB0AIg
    LYo6QxZ/dnNX5yQASIaXepaQuSqDLhzxzkKfBmu30kQ=
    -----END CERTIFICATE-----
    """

  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5HZhNqsQCql7P4Nc
    phR8mkYu+h65nLA8XtOWXyk86VmhRANCAASrzs5Qr5Ti43CMit3GZZntRkatY54x
    URY7CUu1h8ZASz+psLSKieOBdwlbVf/+lG1ZIEmLU5S+6fvIWXVO3yWY
    -----END PRIVATE KEY-----
    """

  /// `openssl pkcs8 -topk8 -v1 PBE-MD5-DES`.
  private static let desInPKCS8 = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIGwMBsGCSqGSIb3DQEFAzAOBAgP7ZS0L9uRagICCAAEgZCb7T4zdE15+teEGh0n
    Mu2JnAmBzhR/2MJ9ADXrsuK+6BJbc46UVHZsUHrDCUYZpngSRFw+bTrdNRVEc0KM
    ve6QFQOcyVeaRTZ+Rg9qrRGFXaOXyOweCPtcQwuf4oai9M/NNnra7Y/H7otqmLYr
    nCXA2UirwKyYEs4I3XfD2+fFjgOKHdRateZlYa+zOSbTrm0=
    -----END ENCRYPTED PRIVATE KEY-----
    """

  /// `openssl pkcs8 -topk8 -v1 PBE-SHA1-RC2-40`.
  private static let rc2InPKCS8 = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIGxMBwGCiqGSIb3DQEMAQYwDgQITubJM+jxC4UCAggABIGQ8GEanbEWTXM2QVUC
    CjQW2EvWNInhOSW4YpuyOhYhAPRIzxFMWAc9y71b4X+cqAHBoL/UvWLqE+Lznro/
    NFJUBDaedH9F0ZvMR19bz0KJk4pJ1Z7LU8a/zzP6Fs6b/RfUg66vrUHs17dQAQlZ
    2gXLNjKuSY+7Aqb78GBnQp6S6zbEP+94MJAnD6XuMmD5FjwC
    -----END ENCRYPTED PRIVATE KEY-----
    """

  /// `openssl pkcs8 -topk8 -scrypt`: N is 16,384, r 8.
  private static let scryptInPKCS8 = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHkME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAgrOu0UW0857QICQAAC
    AQgCAQEwHQYJYIZIAWUDBAEqBBCiPDmNXFxDB4es/Nf7jD6ZBIGQAl/t6shOonoN
    05iHwbSE1LDihBhYKBBa06QyUMU6aqqtU43jL5pEUy6LUnttUQfmIwyGQ8n3zEpT
    dLZ5UYw16OoWmx8ko6a8rYkxTdp9baERaJvk81lIHijwAmBKgkl57/5p9liT6T2l
    fxvYrhEyQ5PTx7es6IaBGflRQzhjaRJkDygRtYZagwEc3e/sF7Rn
    -----END ENCRYPTED PRIVATE KEY-----
    """

  /// `openssl ec -des`.
  private static let desInPEM = """
    -----BEGIN EC PRIVATE KEY-----
    Proc-Type: 4,ENCRYPTED
    DEK-Info: DES-CBC,D20641B7DD72A0B9

    wOmZOdEAmdYcrxinejmWamOFgYxX5+8UdKtGWqkyLy3rJNIQbFRvureCPtaX/Ze7
    t8MLIu8cjTRocVlEL95mQ0n82WAC6NCYs3AsccP1oE5sk7LV7HAZlYYJKisrw4bB
    T+JJGgiDCw3IzpoJA3zWf9PDUqU6+NH0S4JWjRo6Ry8=
    -----END EC PRIVATE KEY-----
    """

  /// `openssl pkcs12 -export -certpbe PBE-SHA1-RC2-40`.
  private static let rc2Archive = """
    MIIDggIBAzCCAzgGCSqGSIb3DQEHAaCCAykEggMlMIIDITCCAhcGCSqGSIb3DQEHBqCCAggwggIEAgEAMIIB/QYJKoZIhvcNAQcB
    MBwGCiqGSIb3DQEMAQYwDgQIoxMxjkr4Y4gCAggAgIIB0H4Y+Wck7ceXTk1rzbrOTcODl99S7Np7OM8H4S7mki8A/ATAej2e8hIV
    Gns8kzB10zs4osKZgweXcP4W8O1wPtghGuxh30aUNJLWWD+AiKyxvF7Y6VgorFTgqHP1AlaksDmia+cbtP/Iw0d8GQd4JsxKgz0l
    6ip79fSMmCP6yQhlaRGUPCKC/E8JBPggFrmuJU8hk765z0JnUKFWeqhXBLltuUPbhok9EHIaceBYSUMrhYfv/JkE8mdd4eitPvgW
    8K53JejY9jTPBYr2BHwX++s/W5KeE0nx9c3eIgxdUfNZFcrX6rAZrBhl+8BvLX+O9UGtQVL2dRCwiErsgVKyvYBFp4qPoMHd4TtD
    KmWYnv+rPNA6uYmSGhp9qeN8Ym07OB9uSJMT4obNapuKntPdiN0Tdpf2hxLjKyVbejMyYQH5ZBZavpMIB45+XFqCWy68Zgq4+8Ti
    gx1nrpD0z+ISLW1YTot+gErAA6KM+3hi7cjoxbqWz3XGLVWR26v9cDm+FiNPoGmML+d/3ycFbAzODXHXW30dG0JVrKf8THI2wWaM
    oYBY7fPLBCiG88oimp6qw2Swo6RgyQhLrvR/NH9HuMYHSNfbtZmaksGl6zlFrWKpMIIBAgYJKoZIhvcNAQcBoIH0BIHxMIHuMIHr
    BgsqhkiG9w0BDAoBAqCBtDCBsTAcBgoqhkiG9w0BDAEDMA4ECHS6/XQbsuTfAgIIAASBkL8MlGNaIYFKYYqcO2or77lKPrEXptkL
    b3vIBcPdkV9Ocmob7dxza7rgcf9Aen7EAraUN+asOZdOEIQPljmRPsunbCkS9ejJQ7rfrjYTTmRqovCS/swcLPBrHSAtL1nTZlRz
    /KFF1xjGbG3tV+wJHAgOlww4ttpDM0boQGYeZoXGAYpd57CyPaF/qtPzhC59ODElMCMGCSqGSIb3DQEJFTEWBBR6WI1f3tGpzxjH
    lbAK2E/pu0PwhzBBMDEwDQYJYIZIAWUDBAIBBQAEIKS03YuQzAfcEEYL2cbTFFYwqVb+vRGxodbZDowHmV8uBAidQUN/D6hVZAIC
    CAA=
    """

  /// `openssl pkcs12 -export -macalg md4`.
  private static let md4Archive = """
    MIID6wIBAzCCA7IGCSqGSIb3DQEHAaCCA6MEggOfMIIDmzCCAlIGCSqGSIb3DQEHBqCCAkMwggI/AgEAMIICOAYJKoZIhvcNAQcB
    MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiO/p8QOlgfjwICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEPW2
    tFulUqqU4ISv2xYYuOOAggHQ06vPm1wxWyIXK6Tl1x8WKVJRaIHibOY7+AYGtXEmOIV/oPbOlFHi2aqBh9X2XLDLanpAqJaC2gxY
    iXaeCf4P6xDZODVmXby2O3iPnrrpU7dQEwNUe4MK265DOeYKRaVr/xB6tsec51gUALmFIjNea+HDC3sXyl2/+TAzxeFIFi9yLUOI
    Ln94Rea5DKnwLxp2BP7xsLTTh8OEAau9dQC2/oUqa5BfIbJ0VJJ6FvYB24rqDqKjf0Wu+8xk+0ZgOz4zvTwJeD1n9QG5RE9pZl6n
    8f1/p1nzR0BHAlsCn+OLAuHWY9tyw/gxnaymwn+ge3zZG4WjvGKkbkm/ZHFQYxOlrkeO+ufmoClpcGZqH3fkmUJuUR84JS1jR7n1
    XR5NeCW+3gKEyg82KU5rxLLNItv5BR20fok63easbUqlcd2tJsrLfI+sqzCJ+OmFzu4YYCxfS1iwGxIuLmc4OaRcfk5RSam9/zeE
    skfHu690vdVaqeJGH1rzxekkXpblQFObpo/qfwP+l139Wb/0luHjot1Kd9tahfcRBC3j+XsWA7vac7WNuRsZJeqpaqIBjyq3KTsg
    bbJKX0N4ypadIwsPv8LvdyFftwE8EfgXP7Lt2OuCDHQwggFBBgkqhkiG9w0BBwGgggEyBIIBLjCCASowggEmBgsqhkiG9w0BDAoB
    AqCB7zCB7DBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0BBQwwHAQINJy4Zvkh9OcCAggAMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUD
    BAEqBBA0/lgyiygsBtVSkurIozcvBIGQh/clj5MLhaqZqvUJZE5DLSHvahDvVMPctwLoHtUH5MKK4igV0gJAyFH3BITOJEvLQimH
    FElLzZ61keZkt1nG/heP7Ti4pphZuRZn+baZEL5zRZJIhPAU7tm6iTQMoin7nUqS6QTwUBlA1dlkKUDzuOX7wG9aWMWvdwZdIumw
    +ToQydeimnb06Xpxwet11rCJMSUwIwYJKoZIhvcNAQkVMRYEFHpYjV/e0anPGMeVsArYT+m7Q/CHMDAwIDAMBggqhkiG9w0CBAUA
    BBA0E3Q4PxScZfN+nZY9z73SBAhhS7/VdWmRngICCAA=
    """
}
