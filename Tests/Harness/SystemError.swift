import Glibc

/// A failed system call.
package struct SystemError: Error, CustomStringConvertible {
    /// The call.
    package let call: String
    /// Its error number.
    package let number: CInt

    /// The call and the system's words.
    package var description: String {
        unsafe "\(call): \(String(cString: strerror(number)))"
    }

    static func last(_ call: String) -> SystemError { SystemError(call: call, number: errno) }
}
