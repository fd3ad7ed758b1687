import Testing
import Wire

/// A client's scripted frames, and the server's required reaction.
///
/// Data only, so that the same cases can be run against a session or a socket.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
    enum Expectation: Sendable {
        /// GOAWAY with the code, and the connection is closed.
        case connectionError(HTTP2ErrorCode)
        /// RST_STREAM with the code on the stream, and the connection continues.
        case streamError(UInt32, HTTP2ErrorCode)
        /// A complete response on each stream, and no error.
        case answered([UInt32])
        /// The same, and the connection is closed without an error.
        case answeredLast([UInt32])
        /// No frame in reaction to the last turn, and the connection continues.
        case ignored
        /// The frame, and no error.
        case frame(RawFrame)
        /// DATA frames of these lengths on the stream, and no error.
        case data(UInt32, [Int])
    }

    /// `RFC 9113 §x` or `RFC 7541 §x`.
    var section: String
    var name: String
    /// The bytes sent in each turn, before the server's frames are read.
    var turns: [[UInt8]]
    var expectation: Expectation
    /// The client's first SETTINGS.
    var settings: [(UInt16, UInt32)] = []
    /// The length of each response body.
    var answerBytes = 10
    /// True if the turns start with the client's first bytes.
    var isFromStart = false

    var testDescription: String { "\(section): \(name)" }

    init(
        _ section: String, _ name: String, _ frames: [RawFrame], _ expectation: Expectation,
        settings: [(UInt16, UInt32)] = [], answerBytes: Int = 10
    ) {
        self.init(
            section, name, turns: [frames], expectation, settings: settings,
            answerBytes: answerBytes)
    }

    init(
        _ section: String, _ name: String, turns: [[RawFrame]], _ expectation: Expectation,
        settings: [(UInt16, UInt32)] = [], answerBytes: Int = 10
    ) {
        self.section = section
        self.name = name
        self.turns = turns.map { $0.flatMap(\.bytes) }
        self.expectation = expectation
        self.settings = settings
        self.answerBytes = answerBytes
    }

    /// A case that starts with the connection's first byte.
    init(
        _ section: String, _ name: String, fromStart bytes: [UInt8], _ expectation: Expectation
    ) {
        self.section = section
        self.name = name
        turns = [bytes]
        self.expectation = expectation
        isFromStart = true
    }

    static let all =
        ConformanceFrames.all + ConformanceControl.all + ConformanceStreams.all
        + ConformanceFlow.all + ConformanceFields.all + ConformanceHPACK.all
}

/// Short forms for the tables.
extension RawFrame {
    /// A complete GET.
    static func get(_ stream: UInt32) -> RawFrame {
        .headers(stream, RawHPACK.request())
    }

    /// The head of a POST with a body.
    static func post(_ stream: UInt32, _ more: [(String, String)] = []) -> RawFrame {
        .headers(stream, RawHPACK.request("POST", more), endHeaders)
    }

    func with(flags: UInt8) -> RawFrame {
        var frame = self
        frame.flags = flags
        return frame
    }

    func with(stream: UInt32) -> RawFrame {
        var frame = self
        frame.stream = stream
        return frame
    }

    func with(payload: [UInt8]) -> RawFrame {
        var frame = self
        frame.payload = payload
        return frame
    }
}
