import Ground

/// The parser of a GIF's logical screen and first frame (GIF89a §18, §20).
///
/// Decoders enlarge the screen for a first frame that does not fit it, so both count.
struct GIFHeader: ImageHeaderParser {
    let format = ImageFormat.gif
    private(set) var neededRange = 6..<13
    private var state = State.screen
    private var width: UInt32 = 0
    private var height: UInt32 = 0

    private enum State {
        case screen
        /// Expects the byte that introduces a block.
        case block
        /// Expects the label of an extension.
        case label
        /// Expects the size of a sub-block of an extension; 0 ends the extension.
        case part
        /// Expects the position and size of a frame.
        case frame
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        switch state {
        case .screen:
            (width, height) = (UInt32(field.little16(at: 0)), UInt32(field.little16(at: 2)))
            let flags = field[4]
            need(1, at: flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1), .block)
        case .block:
            switch field[0] {
            case 0x21: need(1, at: 0, .label)
            case 0x2C: need(8, at: 0, .frame)
            default: return .unreadable
            }
        case .label:
            need(1, at: 0, .part)
        case .part:
            need(1, at: Int(field[0]), field[0] == 0 ? .block : .part)
        case .frame:
            let right = UInt32(field.little16(at: 0)) + UInt32(field.little16(at: 4))
            let bottom = UInt32(field.little16(at: 2)) + UInt32(field.little16(at: 6))
            guard field.little16(at: 4) > 0, field.little16(at: 6) > 0 else { return .unreadable }
            return .sides(max(width, right), max(height, bottom))
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
