/// Request targets of the image interface.
package enum ImageRequestTarget {
    /// `/v1/image?url=…` for an absolute URL, everything but unreserved characters encoded.
    package static func forURL(_ url: String) -> String {
        "/v1/image?url=" + encoded(url)
    }

    /// The text with every byte percent-encoded that is not unreserved (RFC 3986 §2.3).
    package static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { encoded, byte in
            let isUnreserved =
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
                default: false
                }
            if isUnreserved {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
    }
}
