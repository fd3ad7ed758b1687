/// The request methods that are distinguished (RFC 9110 §9, RFC 5789); names are case-sensitive.
package enum RequestMethod: UInt8, CaseIterable, Sendable {
    /// Any other token; see ``RequestParser/methodName``.
    case other
    case get
    case head
    case options
    case post
    case put
    case delete
    case patch
    case connect
    case trace
    /// The purge method of other caches, which has no specification.
    case purge
    /// The purge method of Varnish for tags and patterns, which has no specification.
    case ban

    /// True for ``purge`` and ``ban``, which no origin receives.
    package var isPurge: Bool { self == .purge || self == .ban }

    /// The name as in a request line; empty for ``other``.
    package var text: StaticString {
        switch self {
        case .other: ""
        case .get: "GET"
        case .head: "HEAD"
        case .options: "OPTIONS"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .patch: "PATCH"
        case .connect: "CONNECT"
        case .trace: "TRACE"
        case .purge: "PURGE"
        case .ban: "BAN"
        }
    }

    /// Returns the method whose name of at most eight bytes is this word, the first byte lowest.
    @inline(never)
    static func named(_ word: UInt64) -> RequestMethod {
        switch word {
        case 0x0054_4547: .get
        case 0x4441_4548: .head
        case 0x0053_4E4F_4954_504F: .options
        case 0x5453_4F50: .post
        case 0x0054_5550: .put
        case 0x4554_454C_4544: .delete
        case 0x0048_4354_4150: .patch
        case 0x0054_4345_4E4E_4F43: .connect
        case 0x0045_4341_5254: .trace
        case 0x0045_4752_5550: .purge
        case 0x004E_4142: .ban
        default: .other
        }
    }
}
