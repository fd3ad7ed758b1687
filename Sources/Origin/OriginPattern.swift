/// One origin the operator allows: `*`, `host` or `*.suffix`, each with an optional `:port`.
///
/// Without a port, every port is meant. `*.example.com` means names below example.com, not
/// example.com itself.
package struct OriginPattern: Hashable, Sendable {
    private enum Host: Hashable, Sendable {
        case any
        case name(String)
        case address(IPAddress)
        /// With its leading dot.
        case below(String)
    }

    private let host: Host
    private let port: UInt16?
    /// The pattern as it was written.
    package let text: String

    /// Throws if `text` is none of the forms; names are compared without regard to case and to a
    /// final dot.
    package init(_ text: String) throws(OriginPatternError) {
        self.text = text
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .notASCII(text) }
        let (host, port) = try Self.parts(text)
        self.port = port
        if host == "*" {
            self.host = .any
        } else if host.hasPrefix("["), host.hasSuffix("]") {
            guard let address = IPAddress(host.dropFirst().dropLast()), address.bitCount == 128
            else { throw .notAHost(text) }
            self.host = .address(address)
        } else if let address = IPAddress(host) {
            self.host = .address(address)
        } else if host.hasPrefix("*.") {
            self.host = .below("." + (try Self.name(host.dropFirst(2), in: text)))
        } else {
            self.host = .name(try Self.name(host[...], in: text))
        }
    }

    /// Every origin.
    package static let everything = OriginPattern()

    private init() {
        host = .any
        port = nil
        text = "*"
    }

    /// True if the operator means this origin.
    package func matches(_ origin: OriginAuthority) -> Bool {
        if let port, port != origin.port { return false }
        switch host {
        case .any: return true
        case .name(let name): return Self.withoutFinalDot(origin.host) == name
        case .address(let address): return origin.literal == address
        case .below(let suffix):
            let name = Self.withoutFinalDot(origin.host)
            return name.utf8.count > suffix.utf8.count && name.hasSuffix(suffix)
        }
    }

    private static func withoutFinalDot(_ name: String) -> String {
        name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    /// Host and port; an IPv6 address without brackets has no port.
    private static func parts(_ text: String) throws(OriginPatternError) -> (String, UInt16?) {
        if IPAddress(text) != nil { return (text, nil) }
        guard let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") else {
            return (text, nil)
        }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            let port = UInt16(digits), port > 0
        else { throw .port(text) }
        return (String(text[..<colon]), port)
    }

    private static func name(
        _ name: Substring, in text: String
    ) throws(OriginPatternError) -> String {
        let canonical = withoutFinalDot(name.lowercased())
        let labels = canonical.split(separator: ".", omittingEmptySubsequences: false)
        let isHost = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    (byte >= 0x61 && byte <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
                        || byte == 0x2D || byte == 0x5F
                }
        }
        guard isHost else { throw .notAHost(text) }
        return canonical
    }
}

/// Why a text is no ``OriginPattern``; each case carries the text.
package enum OriginPatternError: Error, Hashable, Sendable {
    case notASCII(String)
    case notAHost(String)
    case port(String)
}

extension OriginPatternError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .notASCII(let text):
            "'\(text)' is no origin pattern: names beyond ASCII are written in Punycode (xn--…)"
        case .notAHost(let text):
            "'\(text)' is no origin pattern; allowed are *, host and *.suffix, each also with :port"
        case .port(let text):
            "'\(text)' has a wrong port; allowed is 1 to 65535"
        }
    }
}
