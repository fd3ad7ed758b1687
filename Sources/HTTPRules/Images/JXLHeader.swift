import Ground

/// The parser of the size at the start of a JPEG XL codestream (ISO/IEC 18181-1, SizeHeader), bare
/// or in the boxes of a container, whole or in parts (ISO/IEC 18181-2, `jxlc` and `jxlp`).
struct JXLHeader: ImageHeaderParser {
    let format = ImageFormat.jxl
    private(set) var neededRange: Range<Int>
    private var state: State
    /// The offset of the end of the current box.
    private var boxEnd = Int.max
    /// True if the box holds a part of the codestream, and another may follow.
    private var isPart = false
    /// The first bytes of the codestream.
    private var codestream: [UInt8] = []

    private enum State {
        /// Expects a box's length and type.
        case box
        /// Expects the 64-bit length that follows the box's type.
        case longBox(isCode: Bool)
        case codestream
    }

    init(isContainer: Bool) {
        state = isContainer ? .box : .codestream
        neededRange = isContainer ? 12..<20 : 0..<1
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .box: return consumeBox(field)
        case .longBox(let isCode):
            let length = field.big64(at: 0)
            guard length >= 16, length <= ISOMediaHeader.bytesMax else { return .unreadable }
            return enter(neededRange.lowerBound - 8 + Int(length), isCode: isCode)
        case .codestream:
            codestream.append(field[0])
            guard let outcome = Self.read(codestream) else { return needCodestream() }
            return outcome
        }
    }

    private mutating func consumeBox(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        isPart = field.hasPrefix(with: "jxlp", at: 4)
        let isCode = isPart || field.hasPrefix(with: "jxlc", at: 4)
        switch field.big32(at: 0) {
        case 0: return isCode ? enter(.max, isCode: true) : .unreadable
        case 1:
            state = .longBox(isCode: isCode)
            neededRange = neededRange.upperBound..<neededRange.upperBound + 8
            return nil
        case 2..<8: return .unreadable
        case let length: return enter(neededRange.lowerBound + Int(length), isCode: isCode)
        }
    }

    /// Enters the box that ends at `end` if it holds a codestream, else skips it.
    private mutating func enter(_ end: Int, isCode: Bool) -> ImageHeaderOutcome? {
        boxEnd = end
        guard isCode else { return needBox() }
        // A part begins with its number.
        neededRange = neededRange.upperBound..<neededRange.upperBound + (isPart ? 4 : 0)
        return needCodestream()
    }

    private mutating func needBox() -> ImageHeaderOutcome? {
        state = .box
        neededRange = boxEnd..<boxEnd + 8
        return nil
    }

    /// Requests the next byte of the codestream, or the next box at the end of a part.
    private mutating func needCodestream() -> ImageHeaderOutcome? {
        let next = neededRange.upperBound
        guard next < boxEnd else { return isPart ? needBox() : .unreadable }
        state = .codestream
        neededRange = next..<next + 1
        return nil
    }

    /// Parses the start of a codestream; `nil` if it does not yet hold the whole size.
    private static func read(_ code: [UInt8]) -> ImageHeaderOutcome? {
        guard code.count > 2 else { return nil }
        guard code.starts(with: [0xFF, 0x0A]) else { return .unreadable }
        var bits = BitReader(Array(code.dropFirst(2)))
        guard let isSmall = bits.read(1), let height = side(&bits, isSmall: isSmall == 1),
            let ratio = bits.read(3)
        else { return nil }
        if ratio > 0 {
            let (left, right) = ratios[Int(ratio) - 1]
            return .sides(UInt32(UInt64(height) * left / right), height)
        }
        guard let width = side(&bits, isSmall: isSmall == 1) else { return nil }
        return .sides(width, height)
    }

    /// The ratios of width to height for the encoded values from 1 on.
    private static let ratios: [(UInt64, UInt64)] = [
        (1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1),
    ]

    /// Parses a side: a multiple of 8 up to 256, or a number up to 2³⁰ in one of four lengths.
    private static func side(_ bits: inout BitReader, isSmall: Bool) -> UInt32? {
        if isSmall { return bits.read(5).map { ($0 + 1) * 8 } }
        guard let choice = bits.read(2) else { return nil }
        return bits.read([9, 13, 18, 30][Int(choice)]).map { $0 + 1 }
    }
}

/// A reader of numbers of any bit length, the lowest bit of each byte first.
private struct BitReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the next `count` bits, at most 32; `nil` if fewer are left.
    mutating func read(_ count: Int) -> UInt32? {
        guard position + count <= bytes.count * 8 else { return nil }
        var number: UInt32 = 0
        for place in 0..<count {
            let bit = bytes[(position + place) / 8] >> UInt8((position + place) % 8) & 1
            number |= UInt32(bit) << UInt32(place)
        }
        position += count
        return number
    }
}
