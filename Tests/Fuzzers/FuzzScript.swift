/// An input as a sequence of small decisions; when it is used up all further ones are 0.
struct FuzzScript {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = Array(bytes)
    }

    var isAtEnd: Bool { position >= bytes.count }

    /// Returns the next byte.
    private mutating func next() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }

    /// Returns a number below `limit`, which is 1 to 65,536, from two bytes.
    mutating func number(below limit: Int) -> Int {
        let low = Int(next())
        return (Int(next()) << 8 | low) % limit
    }

    /// Returns the next bytes, at most `count` of them.
    mutating func bytes(atMost count: Int) -> [UInt8] {
        let end = min(bytes.count, position + count)
        defer { position = end }
        return Array(bytes[position..<end])
    }
}
