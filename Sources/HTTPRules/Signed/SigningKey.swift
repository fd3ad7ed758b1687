import Ground

/// A secret with which URLs are signed.
package struct SigningKey: Hashable, Sendable {
    /// The key's name, for people; empty if it has none.
    package let name: String
    /// The bytes as written in the file: visible ASCII.
    package let secret: [UInt8]

    /// Creates a key from its parts.
    package init(name: String = "", secret: [UInt8]) {
        self.name = name
        self.secret = secret
    }

    /// The minimum length of a secret in bytes: that of the hash (RFC 2104 §3), so that a secret is
    /// no easier to guess than a signature.
    package static let secretBytesMin = 32
    /// The maximum length of a secret in bytes.
    package static let secretBytesMax = 512
    /// The maximum number of keys; a forged signature costs one hash for each.
    package static let countMax = 16
}

/// The reason why a key file is invalid; it holds nothing of the file's content.
package enum SigningKeyFault: Error, Hashable, Sendable {
    /// The file holds no key.
    case noKeys
    case tooMany(Int)
    /// The text before the colon is empty or not a name.
    case name(line: Int)
    /// A line holds a byte other than visible ASCII, such as a space.
    case byte(line: Int)
    case short(line: Int, count: Int)
    case long(line: Int, count: Int)
    /// The name or the secret is also in an earlier line.
    case repeated(line: Int)

    /// The fault as one clause, without a full stop.
    package var message: String {
        switch self {
        case .noKeys: "it contains no key"
        case .tooMany(let count): "it contains \(count) keys"
        case .name(let line): "line \(line) has no name before its colon"
        case .byte(let line): "line \(line) contains more than one word"
        case .short(let line, let count), .long(let line, let count):
            "the secret in line \(line) has \(count) characters"
        case .repeated(let line): "line \(line) repeats a name or a secret"
        }
    }

    /// The valid content of a key file, for messages.
    package static let allowed =
        "1 to \(SigningKey.countMax) lines SECRET or NAME:SECRET, each secret "
        + "\(SigningKey.secretBytesMin) to \(SigningKey.secretBytesMax) visible ASCII characters; "
        + "# begins a comment line"
}

extension SigningKey {
    /// Returns the keys in a file, one per line, in order: the first is used to sign, all are
    /// accepted.
    ///
    /// The text before the first colon of a line is the name, of letters, digits, `-`, `_` and `.`.
    /// Empty lines and lines that begin with `#` are skipped; a line may end in CR LF.
    ///
    /// - Throws: ``SigningKeyFault`` for the first fault found.
    package static func keys(
        of bytes: [UInt8]
    ) throws(SigningKeyFault) -> [SigningKey] {
        var keys: [SigningKey] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard let first = text.first, first != UInt8(ascii: "#") else { continue }
            let key = try key(text, line: index + 1)
            let isNew = keys.allSatisfy { other in
                other.secret != key.secret && (key.name.isEmpty || other.name != key.name)
            }
            guard isNew else { throw .repeated(line: index + 1) }
            keys.append(key)
        }
        guard !keys.isEmpty else { throw .noKeys }
        guard keys.count <= countMax else { throw .tooMany(keys.count) }
        return keys
    }

    /// Parses a line `SECRET` or `NAME:SECRET`.
    private static func key(
        _ text: ArraySlice<UInt8>, line: Int
    ) throws(SigningKeyFault) -> SigningKey {
        guard text.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .byte(line: line) }
        var name = ""
        var secret = text
        if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            let before = text[..<colon]
            guard !before.isEmpty, before.allSatisfy(isNameByte) else { throw .name(line: line) }
            name = String(decoding: before, as: UTF8.self)
            secret = text[(colon + 1)...]
        }
        guard secret.count >= secretBytesMin else {
            throw .short(line: line, count: secret.count)
        }
        guard secret.count <= secretBytesMax else { throw .long(line: line, count: secret.count) }
        return SigningKey(name: name, secret: Array(secret))
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        ByteSet.host.contains(ASCII.lowercased(byte))
    }
}
