import Foundation

// Core Foundation's names for Foundation's types on Linux. Swift's types bridge to them: `data as CFData`, `host as
// CFString?` and `[policy] as CFArray` compile as on Darwin. Except for those of an error, the functions that create
// and read these types do not exist here; `as Data`, `as String` and `as? [SecCertificate]` convert back.

/// Darwin's name for `NSData`: `data as CFData`.
public typealias CFData = NSData
/// Darwin's name for `NSString`: `text as CFString`.
public typealias CFString = NSString
/// Darwin's name for `NSArray`: `[certificate] as CFArray`.
public typealias CFArray = NSArray
/// Darwin's name for `NSDictionary`.
public typealias CFDictionary = NSDictionary
/// Darwin's name for `NSError`.
public typealias CFError = NSError
/// Darwin's name for `NSURL`.
public typealias CFURL = NSURL
/// Darwin's name for `NSDate`: `date as CFDate`.
public typealias CFDate = NSDate
/// Darwin's name for `NSNumber`.
public typealias CFNumber = NSNumber
/// Darwin's name for a Boolean object: `true as CFBoolean`.
public typealias CFBoolean = NSNumber
/// Darwin's name for a Boolean value of C.
public typealias DarwinBoolean = ObjCBool
/// Darwin's name for any object of Core Foundation.
public typealias CFTypeRef = AnyObject
/// Darwin's name for a count or a position.
public typealias CFIndex = Int
/// Darwin's name for a set of flags.
public typealias CFOptionFlags = UInt
/// Darwin's name for the number of a type.
public typealias CFTypeID = UInt
/// Darwin's name for seconds.
public typealias CFTimeInterval = Double
/// Darwin's name for seconds since 2001-01-01, 0 h UTC.
public typealias CFAbsoluteTime = Double

/// Darwin's name for an allocator. There are none here: `nil` is the only value of `CFAllocator?`.
public typealias CFAllocator = Never
/// The default allocator: `nil`.
public let kCFAllocatorDefault: CFAllocator? = nil

/// Returns the error's code.
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }
/// Returns the error's domain.
public func CFErrorGetDomain(_ error: CFError) -> CFString { error.domain as CFString }
/// Returns the error's human-readable description.
public func CFErrorCopyDescription(_ error: CFError) -> CFString { error.localizedDescription as CFString }
