/// The frame header of a JPEG (ITU-T T.81 §B.2.2), behind any number of marker segments.
///
/// As the decoders in use do, it passes over bytes that are no marker where one should be: a reader
/// that did not would be easily kept from a size that they find.
struct JPEGHeader: ImageHeaderParser {
    let format = ImageFormat.jpeg
    private(set) var neededRange = 2..<3
    private var state = State.marker

    private enum State {
        /// 0xFF, which begins a marker.
        case marker
        /// The marker's code, after any number of fill bytes (§B.1.1.2).
        case code
        /// A segment's length, which counts itself.
        case length
        /// Length, precision, height, width, and the number of components.
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
            // Three bytes a component: decoders give up where the length says anything else.
            let components = Int(field[7])
            guard components > 0, Int(field.big16(at: 0)) == 8 + 3 * components else {
                return .unreadable
            }
            // A height of 0 means that it stands behind the first scan; no browser takes that.
            return .sides(UInt32(field.big16(at: 5)), UInt32(field.big16(at: 3)))
        }
        return nil
    }

    private mutating func consumeMarkerCode(_ code: UInt8) -> ImageHeaderOutcome? {
        switch code {
        case 0xFF: need(1, at: 0, .code)
        // A zero makes 0xFF data; TEM and RST stand alone.
        case 0, 0x01, 0xD0...0xD7: need(1, at: 0, .marker)
        // A second start, the end, or a scan, before any frame.
        case 0xD8...0xDA: return .unreadable
        // Frames of all kinds; among their codes DHT, JPG and DAC are none.
        case 0xC0...0xCF where code != 0xC4 && code != 0xC8 && code != 0xCC: need(8, at: 0, .frame)
        default: need(2, at: 0, .length)
        }
        return nil
    }

    /// Wants `count` bytes, `distance` behind those that were given last.
    private mutating func need(_ count: Int, at distance: Int, _ state: State) {
        let start = neededRange.upperBound + distance
        neededRange = start..<start + count
        self.state = state
    }
}
