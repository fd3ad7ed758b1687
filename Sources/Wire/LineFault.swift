/// What is wrong with a line of a message head or of a trailer section, whoever sent it.
package enum LineSyntaxError: Hashable, Sendable {
    /// CR that no LF follows (RFC 9112 §2.2).
    case bareCarriageReturn
    /// LF that no CR precedes (RFC 9112 §2.2; a recipient may take it for a line end, this one does
    /// not).
    case bareLineFeed
    /// NUL, DEL or another control byte (RFC 9110 §5.5).
    case controlByte(UInt8)
    /// A field line that begins with white space: obs-fold, or space before the first field (RFC
    /// 9112 §5.2, §2.2).
    case leadingSpace
    /// A field line that begins with its colon.
    case emptyName
    /// White space between field name and colon (RFC 9112 §5.1).
    case spaceBeforeColon
    /// A byte that no token holds in a field name, or no colon at all (RFC 9110 §5.1).
    case invalidNameToken

    /// A sentence for whoever sent the message.
    package var message: String {
        switch self {
        case .bareCarriageReturn: "A CR is not followed by LF."
        case .bareLineFeed: "A line ends in LF without CR."
        case .controlByte(let byte):
            "A control byte (\(byte)) stands where text belongs."
        case .leadingSpace:
            "A field line begins with white space; folded lines are not allowed."
        case .emptyName: "A field line has no name before its colon."
        case .spaceBeforeColon: "White space stands between a field name and its colon."
        case .invalidNameToken: "A field line has no name that is a token followed by a colon."
        }
    }

    /// The fault of the control byte at `index`, which ends no line.
    static func forControlByte(_ bytes: Span<UInt8>, at index: Int) -> LineSyntaxError {
        switch bytes[index] {
        case Byte.carriageReturn: .bareCarriageReturn
        case Byte.lineFeed: .bareLineFeed
        case let byte: .controlByte(byte)
        }
    }
}
