/// The parser of a JPEG's frame header (ITU-T T.81 §B.2.2), after any number of marker segments.
///
/// Like common decoders, it skips bytes that are not a marker where one is expected: otherwise a
/// file could hide a size that decoders find.
struct JPEGHeader: ImageHeaderParser {
    let format = ImageFormat.jpeg
    private(set) var neededRange = 2..<3
    private var state = State.marker

    private enum State {
        /// Expects 0xFF, which begins a marker.
        case marker
        /// Expects the marker's code, after any number of fill bytes (§B.1.1.2).
        case code
        /// Expects a segment's length, which includes its own two bytes.
        case length
        /// Expects length, precision, height, width, and the number of components.
        case frame
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .marker:
            need(1, at: 0, field[0] == 0xFF ? .code : .marker)
        case .code:
            return consumeMarkerCode(field[0])
        case .length:
            let length = Int(field.big16(at: 0))
            guard length >= 2 else { return .unreadable }
            need(1, at: length - 2, .marker)
        case .frame:
            // A component has three bytes; decoders fail if the length differs.
            let components = Int(field[7])
            guard components > 0, Int(field.big16(at: 0)) == 8 + 3 * components else {
                return .unreadable
            }
            // A height of 0 means that the height follows the first scan; no browser supports that.
            return .sides(UInt32(field.big16(at: 5)), UInt32(field.big16(at: 3)))
        }
        return nil
    }

    private mutating func consumeMarkerCode(_ code: UInt8) -> ImageHeaderOutcome? {
        switch code {
        case 0xFF: need(1, at: 0, .code)
        // A zero makes 0xFF data; TEM and RST have no segment.
        case 0, 0x01, 0xD0...0xD7: need(1, at: 0, .marker)
        // A second start, the end, or a scan, before any frame.
        case 0xD8...0xDA: return .unreadable
        // Frames of all kinds; DHT, JPG and DAC are in the same range but are not frames.
        case 0xC0...0xCF where code != 0xC4 && code != 0xC8 && code != 0xCC: need(8, at: 0, .frame)
        default: need(2, at: 0, .length)
        }
        return nil
    }

    /// Requests `count` bytes, `distance` bytes after the previous ones.
    private mutating func need(_ count: Int, at distance: Int, _ state: State) {
        let start = neededRange.upperBound + distance
        neededRange = start..<start + count
        self.state = state
    }
}
