import Foundation

/// The names of text encodings in HTTP: those of the IANA registry of character sets, and common alternatives (the
/// labels of WHATWG Encoding 4.2).
enum TextEncodingName {
  /// - Returns: The encoding of that name, or `nil` if the name is unknown, or Foundation on Linux cannot decode it.
  static func encoding(of name: String) -> String.Encoding? { encodings[name.lowercased()] }

  /// Returns the name for a request body's `Content-Type`.
  ///
  /// - Returns: The preferred MIME name, or `nil` if the encoding has none.
  static func name(of encoding: String.Encoding) -> String? { names[encoding.rawValue] }

  /// Returns the encoding for a number of Core Foundation, in Foundation's representation.
  private static func foundation(_ number: UInt) -> String.Encoding { String.Encoding(rawValue: 1 << 31 | number) }

  /// The encodings with their names, the preferred one first.
  private static let table: [(String.Encoding, String)] =
    [
      (.utf8, "utf-8 utf8 unicode-1-1-utf-8"),
      (.ascii, "us-ascii ascii ansi_x3.4-1968 iso646-us iso-ir-6 us cp367 ibm367"),
      (
        .isoLatin1,
        "iso-8859-1 latin1 l1 iso8859-1 iso88591 iso_8859-1 cp819 ibm819 iso-ir-100 csisolatin1 iso_8859-1:1987"
      ),
      (.isoLatin2, "iso-8859-2 latin2 l2 iso8859-2 iso88592 iso_8859-2 iso-ir-101 csisolatin2 iso_8859-2:1987"),
      (.utf16, "utf-16 iso-10646-ucs-2 ucs-2 unicode"), (.utf16BigEndian, "utf-16be"), (.utf16LittleEndian, "utf-16le"),
      (.utf32, "utf-32 iso-10646-ucs-4 ucs-4"), (.utf32BigEndian, "utf-32be"), (.utf32LittleEndian, "utf-32le"),
      (foundation(0x0400_0100), "utf-7 unicode-1-1-utf-7"),
      (.shiftJIS, "shift_jis shift-jis sjis x-sjis ms_kanji csshiftjis windows-31j cswindows31j cp932 ms932"),
      (.japaneseEUC, "euc-jp eucjp x-euc-jp x-euc extended_unix_code_packed_format_for_japanese cseucpkdfmtjapanese"),
      (.iso2022JP, "iso-2022-jp csiso2022jp"), (foundation(0x822), "iso-2022-jp-1"),
      (foundation(0x821), "iso-2022-jp-2 csiso2022jp2"),
      (.windowsCP1250, "windows-1250 cp1250 x-cp1250"), (.windowsCP1251, "windows-1251 cp1251 x-cp1251"),
      (.windowsCP1252, "windows-1252 cp1252 x-cp1252"), (.windowsCP1253, "windows-1253 cp1253 x-cp1253"),
      (.windowsCP1254, "windows-1254 cp1254 x-cp1254"), (foundation(0x505), "windows-1255 cp1255 x-cp1255"),
      (foundation(0x506), "windows-1256 cp1256 x-cp1256"), (foundation(0x507), "windows-1257 cp1257 x-cp1257"),
      (foundation(0x508), "windows-1258 cp1258 x-cp1258"), (foundation(0x41D), "windows-874 cp874 dos-874"),
      // Foundation's own number for Macintosh's Western set, 30, has a wrong table on Linux.
      (foundation(0), "macintosh mac x-mac-roman macroman csmacintosh"), (foundation(6), "x-mac-greek"),
      (foundation(7), "x-mac-cyrillic x-mac-ukrainian"), (foundation(29), "x-mac-ce x-mac-centraleurroman"),
      (foundation(35), "x-mac-turkish"),
      (foundation(0xA02), "koi8-r koi8 koi8_r koi cskoi8r"), (foundation(0xA08), "koi8-u koi8-ru"),
      // Browsers and servers use the name of the smaller set for the larger one.
      (
        foundation(0x421),
        "gbk gb2312 gb_2312 gb_2312-80 gb2312-80 csgb2312 csiso58gb231280 iso-ir-58 chinese x-gbk cp936 ms936 windows-936 csgbk"
      ),
      (foundation(0x632), "gb18030 csgb18030"), (foundation(0x930), "euc-cn euccn x-euc-cn"),
      (foundation(0xA05), "hz-gb-2312 hz"),
      (foundation(0xA03), "big5 big-5 cn-big5 csbig5 x-x-big5"), (foundation(0xA06), "big5-hkscs big5hkscs"),
      (foundation(0x423), "cp950 ms950 windows-950"), (foundation(0x931), "euc-tw euctw x-euc-tw cns11643"),
      (
        foundation(0x422),
        "euc-kr euckr cseuckr ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 csksc56011987 iso-ir-149 korean windows-949 cp949 ms949 uhc"
      ),
      (foundation(0x840), "iso-2022-kr csiso2022kr"), (foundation(0x830), "iso-2022-cn"),
      (foundation(0x831), "iso-2022-cn-ext"),
      (foundation(0x20B), "tis-620 tis620 iso-8859-11 iso8859-11 iso885911"),
      (foundation(0x206), "iso-8859-6-i iso-8859-6-e asmo-708 ecma-114 arabic"),
      (foundation(0x207), "greek ecma-118 greek8 elot_928"),
      (foundation(0x208), "iso-8859-8-i iso-8859-8-e logical visual hebrew"), (foundation(0xC02), "ibm037 cp037"),
    ]
    + [
      (3, "latin3 l3 iso_8859-3:1988 iso-ir-109 csisolatin3"), (4, "latin4 l4 iso_8859-4:1988 iso-ir-110 csisolatin4"),
      (5, "cyrillic iso_8859-5:1988 iso-ir-144 csisolatincyrillic"), (6, "iso_8859-6:1987 iso-ir-127 csisolatinarabic"),
      (7, "iso_8859-7:1987 iso-ir-126 csisolatingreek sun_eu_greek"),
      (8, "iso_8859-8:1988 iso-ir-138 csisolatinhebrew"),
      (9, "latin5 l5 iso_8859-9:1989 iso-ir-148 csisolatin5"), (10, "latin6 l6 iso-ir-157 csisolatin6"),
      (13, ""), (14, ""), (15, "latin9 l9 latin-9 csisolatin9"), (16, "latin10"),
    ].map { part, others in
      (foundation(0x200 + part), "iso-8859-\(part) iso8859-\(part) iso8859\(part) iso_8859-\(part) \(others)")
    }
    + [
      (437, 0x400), (737, 0x405), (775, 0x406), (850, 0x410), (852, 0x412), (855, 0x413), (857, 0x414), (860, 0x415),
      (861, 0x416), (862, 0x417), (863, 0x418), (864, 0x419), (865, 0x41A), (866, 0x41B), (869, 0x41C),
    ].map { page, number in (foundation(number), "ibm\(page) cp\(page) \(page) csibm\(page) dos-\(page)") }

  private static func pairs() -> [(name: String, encoding: String.Encoding)] {
    table.flatMap { encoding, names in names.split(separator: " ").map { (String($0), encoding) } }
  }

  private static let encodings = Dictionary(pairs().map { ($0.name, $0.encoding) }) { first, _ in first }

  private static let names: [UInt: String] = {
    var names = Dictionary(pairs().map { ($0.encoding.rawValue, $0.name) }) { first, _ in first }
    for (part, number) in [(6, 0x206), (7, 0x207), (8, 0x208)] as [(Int, UInt)] {
      names[foundation(number).rawValue] = "iso-8859-\(part)"
    }
    names[String.Encoding.macOSRoman.rawValue] = "macintosh"
    // Programs for Darwin use Core Foundation's numbers for these encodings.
    for (other, usual) in [
      (0x631, foundation(0x421)), (0x940, foundation(0x422)), (0x920, .japaneseEUC), (0xA01, .shiftJIS),
      (0x820, .iso2022JP), (0x201, .isoLatin1), (0x202, .isoLatin2), (0x500, .windowsCP1252), (0x501, .windowsCP1250),
      (0x502, .windowsCP1251), (0x503, .windowsCP1253), (0x504, .windowsCP1254), (0x600, .ascii), (0x0800_0100, .utf8),
    ] as [(UInt, String.Encoding)] {
      names[foundation(other).rawValue] = names[usual.rawValue]
    }
    return names
  }()
}
