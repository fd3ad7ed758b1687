/// The one spelling of a host name.
package enum DomainName {
    /// A host name in lower case without its final dot: labels of 1 to 63 letters, digits, `-` and
    /// `_`, 253 bytes in all, the last label no number (other readers take that for an address).
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
