/// A host with an optional port, written as `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`.
package struct HostPort: Hashable, Sendable {
    /// The host as written, with the brackets of an IPv6 address.
    package let host: String
    /// The port; `nil` if none was written.
    package let port: UInt16?

    /// Splits a text into host and port without checking the host.
    ///
    /// - Returns: `nil` for an unclosed bracket, more than one colon outside brackets, or a port
    ///   that is not one to five digits with a value of at most 65535.
    package init?(_ text: String) {
        let hostEnd: String.Index
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            hostEnd = text.index(after: close)
        } else {
            hostEnd = text.firstIndex(of: ":") ?? text.endIndex
        }
        host = String(text[..<hostEnd])
        let rest = text[hostEnd...]
        guard !rest.isEmpty else {
            port = nil
            return
        }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), (1...5).contains(digits.utf8.count),
            digits.utf8.allSatisfy(ASCII.isDigit), let number = UInt16(digits)
        else { return nil }
        port = number
    }

    /// The address in ``host``, IPv6 only in brackets and without a zone; `nil` if the host is a
    /// name.
    package var address: IPAddress? {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        guard let address = IPAddress(isBracketed ? host.dropFirst().dropLast() : host[...]),
            (address.bitCount == 128) == isBracketed
        else { return nil }
        return address
    }

    /// The host and port to connect to: a canonical name, or an address without brackets.
    ///
    /// `nil` if the host is neither, or the port is absent or 0.
    package var endpoint: (host: String, port: UInt16)? {
        guard let port, port > 0 else { return nil }
        if let address { return (address.description, port) }
        return DomainName.canonical(host[...]).map { ($0, port) }
    }
}

/// Validation and normalisation of host names.
package enum DomainName {
    /// Returns a host name in lower case without its final dot, or `nil` if it is invalid.
    ///
    /// Valid are labels of 1 to 63 letters, digits, `-` and `_`, at most 253 bytes in all. The last
    /// label must not be a number, because other parsers take such a name for an address.
    package static func canonical(_ text: Substring) -> String? {
        let bare = text.hasSuffix(".") ? text.dropLast() : text
        let labels = bare.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy(isLabelByte)
        }
        guard isName, bare.utf8.count <= 253, let last = labels.last,
            !last.allSatisfy(ASCII.isDigit)
        else { return nil }
        return bare.lowercased()
    }

    private static func isLabelByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}
