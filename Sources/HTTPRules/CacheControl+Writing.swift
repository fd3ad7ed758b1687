import Ground

extension CacheControl {
    /// Appends the directives as one field value, from which the same are read again.
    package func append(to bytes: inout [UInt8]) {
        let start = bytes.count
        for (flag, name) in Self.flagNames where flags.contains(flag) {
            Self.append(name, after: start, to: &bytes)
        }
        for (name, number) in numbers {
            guard let number else { continue }
            Self.append(name, after: start, to: &bytes)
            bytes.append(UInt8(ascii: "="))
            ASCII.append(UInt64(max(0, number.seconds)), to: &bytes)
        }
        Self.append("private", privateFields, after: start, to: &bytes)
        Self.append("no-cache", noCacheFields, after: start, to: &bytes)
        for directive in unknown {
            Self.separate(after: start, &bytes)
            bytes += directive.name
            guard let argument = directive.argument else { continue }
            bytes.append(UInt8(ascii: "="))
            Self.append(argument: argument, to: &bytes)
        }
    }

    private static let flagNames: [(Flags, String)] = [
        (.isPublic, "public"), (.isPrivate, "private"), (.noStore, "no-store"),
        (.noCache, "no-cache"), (.mustRevalidate, "must-revalidate"),
        (.proxyRevalidate, "proxy-revalidate"), (.mustUnderstand, "must-understand"),
        (.immutable, "immutable"), (.noTransform, "no-transform"),
        (.onlyIfCached, "only-if-cached"),
    ]

    private var numbers: [(String, Interval?)] {
        [
            ("max-age", maxAge), ("s-maxage", sMaxAge), ("max-stale", maxStale),
            ("min-fresh", minFresh), ("stale-while-revalidate", staleWhileRevalidate),
            ("stale-if-error", staleIfError),
        ]
    }

    private static func separate(after start: Int, _ bytes: inout [UInt8]) {
        if bytes.count > start { bytes += ", ".utf8 }
    }

    private static func append(_ name: String, after start: Int, to bytes: inout [UInt8]) {
        separate(after: start, &bytes)
        bytes += name.utf8
    }

    private static func append(
        _ name: String, _ fields: FieldNames, after start: Int, to bytes: inout [UInt8]
    ) {
        if fields.isEmpty { return }
        append(name, after: start, to: &bytes)
        bytes += "=\"".utf8
        bytes += fields.names.joined(separator: ", ".utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    /// A token where the argument is one, else a quoted string.
    private static func append(argument: [UInt8], to bytes: inout [UInt8]) {
        if !argument.isEmpty, argument.allSatisfy(ByteSet.token.contains) {
            bytes += argument
            return
        }
        bytes.append(UInt8(ascii: "\""))
        for byte in argument {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                bytes.append(UInt8(ascii: "\\"))
            }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
