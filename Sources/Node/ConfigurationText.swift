/// What the text of a file of settings must not hold, looked at before it is read as YAML.
///
/// None of it is of any use here, and each can make a short text cost a reader of YAML time or
/// memory without end: an anchor stands for as much as it names wherever an alias repeats it, and a
/// key that is itself a collection is gone through again at every level above it.
enum YAMLPrecheck {
    /// Bytes of a file; more are not even read.
    static let bytesMax = 1 << 20

    /// - Throws: the first thing that is refused, with its line.
    static func check(_ text: String, in file: String) throws(ConfigurationError) {
        guard text.utf8.count <= bytesMax else { throw tooLarge(file) }
        var line = 1
        var before = UInt8(ascii: "\n")
        var isComment = false
        var lineHasOnlyBlanks = true
        var utf8 = text.utf8[...]
        while let byte = utf8.popFirst() {
            defer { before = byte }
            if endsLine(byte, before: before) {
                if byte == UInt8(ascii: "\n") { line += 1 }
                isComment = false
                lineHasOnlyBlanks = true
                continue
            }
            // Of comments only whole lines are passed over: behind a value “#” may be a part of it.
            if byte == UInt8(ascii: "#"), lineHasOnlyBlanks { isComment = true }
            if byte != UInt8(ascii: " ") { lineHasOnlyBlanks = false }
            guard !isComment, let reason = reason(byte, before: before, after: utf8.first) else {
                continue
            }
            throw .malformedFile(file, line: line, reason: reason)
        }
    }

    static func tooLarge(_ file: String) -> ConfigurationError {
        .unreadableFile(file, reason: "it is larger than \(bytesMax >> 20) MiB")
    }

    /// Why `byte` may not stand between these two; nil if it may.
    private static func reason(_ byte: UInt8, before: UInt8, after: UInt8?) -> String? {
        switch byte {
        case UInt8(ascii: "&"):
            guard !isWord(before), let after, isWord(after) else { return nil }
            return "an anchor (&) is not taken; write the value out"
        case UInt8(ascii: "?"):
            return beginsToken(after: before) ? "a key marked by ? is not taken" : nil
        default: return nil
        }
    }

    /// The line breaks of YAML 1.1: LF, CR, and the last bytes of NEL, LS and PS.
    private static func endsLine(_ byte: UInt8, before: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
        case 0x85: before == 0xC2
        case 0xA8, 0xA9: before == 0x80
        default: false
        }
    }

    /// True if what follows `byte` may be read as the first character of a token.
    private static func beginsToken(after byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"),
            UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: ","), UInt8(ascii: "]"),
            UInt8(ascii: "}"), UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: ":"),
            0x80...:
            true
        default: false
        }
    }

    /// What the name of an anchor is made of.
    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
