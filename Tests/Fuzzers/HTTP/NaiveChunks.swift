/// The chunked coding (RFC 9112 §7.1) read by recursive descent over a whole array: slow, and
/// without any code of the decoder under test.
struct NaiveChunks {
    enum Outcome: Equatable {
        /// The data, the lines of the trailer section, and the offset after the body.
        case whole([UInt8], trailers: [UInt8], end: Int)
        /// The grammar is violated, or a limit is exceeded; with the data before.
        case broken([UInt8])
        /// All bytes are a prefix of a body; with the data so far.
        case incomplete([UInt8])
    }

    private enum Pause: Error {
        case broken
        case incomplete
    }

    private let bytes: [UInt8]
    private let extensionBytesMax: Int
    private let trailerBytesMax: Int
    private var index = 0
    private var data: [UInt8] = []
    private var extensionBytes = 0

    private init(_ bytes: [UInt8], extensionBytesMax: Int, trailerBytesMax: Int) {
        self.bytes = bytes
        self.extensionBytesMax = extensionBytesMax
        self.trailerBytesMax = trailerBytesMax
    }

    static func read(
        _ bytes: [UInt8], extensionBytesMax: Int, trailerBytesMax: Int
    ) -> Outcome {
        var reading = NaiveChunks(
            bytes, extensionBytesMax: extensionBytesMax, trailerBytesMax: trailerBytesMax)
        do throws(Pause) {
            while try reading.chunk() {}
            let start = reading.index
            try reading.trailers()
            let end = reading.index
            return .whole(reading.data, trailers: Array(bytes[start..<end - 2]), end: end)
        } catch {
            return error == .broken ? .broken(reading.data) : .incomplete(reading.data)
        }
    }

    // MARK: Productions

    /// Reads `chunk` or `last-chunk`; false after the latter.
    private mutating func chunk() throws(Pause) -> Bool {
        var size: UInt64 = 0
        var digits = 0
        while let digit = Character(Unicode.Scalar(try peek())).hexDigitValue {
            digits += 1
            guard digits <= 16 else { throw .broken }
            size = size * 16 + UInt64(digit)
            index += 1
        }
        guard digits > 0 else { throw .broken }
        if try peek() == UInt8(ascii: ";") { try extensions() } else { try expect("\r") }
        try expect("\n")
        if size == 0 { return false }
        let left = UInt64(bytes.count - index)
        data += bytes[index..<index + Int(min(size, left))]
        guard size <= left else { throw .incomplete }
        index += Int(size)
        try expect("\r\n")
        return true
    }

    /// Reads an extension, `chunk-ext` without white space, and the CR after it.
    ///
    /// Everything after the first semicolon of a line counts.
    private mutating func extensions() throws(Pause) {
        index += 1
        while true {
            try countedToken()
            if try peek() == UInt8(ascii: "=") {
                try countOne()
                if try peek() == UInt8(ascii: "\"") { try quoted() } else { try countedToken() }
            }
            let next = try peek()
            guard next == UInt8(ascii: ";") || next == 13 else { throw .broken }
            try countOne()
            if next == 13 { return }
        }
    }

    private mutating func countedToken() throws(Pause) {
        guard Self.isToken(try peek()) else { throw .broken }
        while Self.isToken(try peek()) { try countOne() }
    }

    private mutating func quoted() throws(Pause) {
        try countOne()
        while try peek() != UInt8(ascii: "\"") {
            if try peek() == UInt8(ascii: "\\") { try countOne() }
            guard Self.isText(try peek()) else { throw .broken }
            try countOne()
        }
        try countOne()
    }

    private mutating func countOne() throws(Pause) {
        index += 1
        extensionBytes += 1
        guard extensionBytes <= extensionBytesMax else { throw .broken }
    }

    /// Reads `trailer-section` and the last line end.
    private mutating func trailers() throws(Pause) {
        let end = index + trailerBytesMax
        while true {
            var byte = try next(before: end)
            if byte == 13 { break }
            var name: [UInt8] = []
            while byte != UInt8(ascii: ":") {
                guard Self.isToken(byte) else { throw .broken }
                name.append(byte)
                byte = try next(before: end)
            }
            let text = String(decoding: name, as: UTF8.self).lowercased()
            guard !name.isEmpty, !Self.forbidden.contains(text) else { throw .broken }
            repeat {
                byte = try next(before: end)
                guard Self.isText(byte) || byte == 13 else { throw .broken }
            } while byte != 13
            guard try next(before: end) == 10 else { throw .broken }
        }
        guard try next(before: end) == 10 else { throw .broken }
    }

    private mutating func next(before end: Int) throws(Pause) -> UInt8 {
        let byte = try peek()
        guard index < end else { throw .broken }
        index += 1
        return byte
    }

    /// Fields that would affect framing or routing (RFC 9110 §6.5.1).
    private static let forbidden = ["content-length", "transfer-encoding", "host"]

    // MARK: Characters

    private func peek() throws(Pause) -> UInt8 {
        guard index < bytes.count else { throw .incomplete }
        return bytes[index]
    }

    private mutating func expect(_ text: String) throws(Pause) {
        for byte in text.utf8 {
            guard try peek() == byte else { throw .broken }
            index += 1
        }
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        let character = Character(Unicode.Scalar(byte))
        return byte < 128
            && (character.isLetter || character.isNumber || "!#$%&'*+-.^_`|~".contains(character))
    }

    /// Returns true for a tab, or a printable byte of any character set (RFC 9110 §5.5).
    private static func isText(_ byte: UInt8) -> Bool {
        byte == 9 || byte >= 32 && byte != 127
    }
}
