import Wire

/// The states of streams and their ids (RFC 9113 §5.1), DATA (§6.1), and the frames of a message
/// (§8.1).
enum ConformanceStreams {
    static let all = idle + halfClosed + closed + ids + data + messages

    private static let end = RawFrame.endStream

    private static let idle: [ConformanceCase] = [
        .init("RFC 9113 §5.1", "idle: DATA", [.data(1, [0])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1", "idle: RST_STREAM of a higher stream",
            [.get(1), .reset(3)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1", "idle: WINDOW_UPDATE",
            [.window(1, 100)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1", "idle: CONTINUATION",
            [.continuation(1, [])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1", "idle: DATA on a stream of the server's",
            [.data(2, [0])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1", "idle: WINDOW_UPDATE on a stream of the server's",
            [.window(2, 1)], .connectionError(.protocolError)),
    ]

    /// A response of 10 bytes that waits for a window, so that the stream is not closed.
    private static func waiting(
        _ name: String, _ frames: [RawFrame], _ expectation: ConformanceCase.Expectation
    ) -> ConformanceCase {
        .init(
            "RFC 9113 §5.1", "half-closed (remote): " + name, turns: [[.get(1)], frames],
            expectation, settings: [(4, 0)])
    }

    private static let halfClosed: [ConformanceCase] = [
        waiting("DATA", [.data(1, [0])], .connectionError(.streamClosed)),
        waiting("HEADERS", [.get(1)], .connectionError(.streamClosed)),
        waiting("CONTINUATION", [.continuation(1, [])], .connectionError(.protocolError)),
        waiting("WINDOW_UPDATE", [.window(1, 10)], .answered([1])),
        waiting("PRIORITY", [.priority(1, on: 0)], .ignored),
        waiting("RST_STREAM", [.reset(1)], .ignored),
        .init(
            "RFC 9113 §8.1", "half-closed (local): an answer before the request is complete",
            turns: [[.post(1)], [.data(1, [0])], [.get(3)]], .streamError(1, .noError)),
    ]

    private static func ended(
        _ name: String, _ frames: [RawFrame], _ expectation: ConformanceCase.Expectation
    ) -> ConformanceCase {
        .init(
            "RFC 9113 §5.1", "closed by both ends: " + name, turns: [[.get(1)], frames],
            expectation)
    }

    private static func reset(
        _ name: String, _ frames: [RawFrame], _ expectation: ConformanceCase.Expectation
    ) -> ConformanceCase {
        .init(
            "RFC 9113 §5.1", "closed by RST_STREAM: " + name,
            turns: [[.get(1), .reset(1)], frames], expectation, settings: [(4, 0)])
    }

    private static let closed: [ConformanceCase] = [
        ended("DATA", [.data(1, [0])], .connectionError(.streamClosed)),
        ended("HEADERS", [.get(1)], .connectionError(.streamClosed)),
        ended("CONTINUATION", [.continuation(1, [])], .connectionError(.protocolError)),
        ended("WINDOW_UPDATE", [.window(1, 10)], .ignored),
        ended("RST_STREAM", [.reset(1)], .ignored),
        ended("PRIORITY", [.priority(1, on: 0)], .ignored),
        reset("DATA", [.data(1, [0])], .connectionError(.streamClosed)),
        reset("HEADERS", [.get(1)], .connectionError(.streamClosed)),
        reset("CONTINUATION", [.continuation(1, [])], .connectionError(.protocolError)),
        reset("WINDOW_UPDATE", [.window(1, 10)], .ignored),
        reset("PRIORITY", [.priority(1, on: 0)], .ignored),
        .init(
            "RFC 9113 §5.1", "closed by the server's RST_STREAM: DATA and trailers on their way",
            turns: [
                [.headers(1, RawHPACK.request("POST", [("te", "gzip")]), RawFrame.endHeaders)],
                [.data(1, [0]), .headers(1, RawHPACK.literal("a", "b"))], [.get(3)],
            ], .streamError(1, .protocolError)),
    ]

    private static let ids: [ConformanceCase] = [
        .init("RFC 9113 §5.1.1", "an even id", [.get(2)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §5.1.1", "an id below one before",
            [.get(5), .get(3)], .connectionError(.protocolError)),
        .init("RFC 9113 §5.1.1", "ids that are skipped", [.get(1), .get(7)], .answered([1, 7])),
        .init(
            "RFC 9113 §5.1.1", "DATA on an id that was skipped",
            [.get(5), .data(3, [0])], .connectionError(.streamClosed)),
        .init("RFC 9113 §5.1.1", "the highest id", [.get(0x7FFF_FFFF)], .answered([0x7FFF_FFFF])),
        .init(
            "RFC 9113 §5.1.2", "more streams than were announced",
            (0...128).map { .get(2 * $0 + 1) }, .connectionError(.protocolError),
            settings: [(4, 0)]),
        .init(
            "RFC 9113 §5.1.2", "as many streams as were announced",
            (0...127).map { .get(2 * $0 + 1) }, .answered((0...127).map { 2 * $0 + 1 })),
        .init(
            "RFC 9113 §5.1.2", "closed streams do not count",
            turns: (0...200).map { [.get(2 * $0 + 1)] }, .answered([1, 401])),
    ]

    private static let data: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.1", "DATA on stream 0", [.data(0, [0])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.1", "a body in one frame", [.post(1), .data(1, [0], end)], .answered([1])),
        .init(
            "RFC 9113 §6.1", "a body in several frames",
            [.post(1), .data(1, [0]), .data(1, [0]), .data(1, [], end)], .answered([1])),
        .init(
            "RFC 9113 §6.1", "DATA with padding",
            [.post(1), .data(1, [3, 9, 0, 0, 0], end | RawFrame.padded)], .answered([1])),
        .init(
            "RFC 9113 §6.1", "DATA of padding only",
            [.post(1), .data(1, [2, 0, 0], end | RawFrame.padded)], .answered([1])),
        .init(
            "RFC 9113 §6.1", "padding as long as the payload of DATA",
            [.post(1), .data(1, [5, 9, 0, 0, 0], end | RawFrame.padded)],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.1", "DATA with the flag of padding and no byte",
            [.post(1), .data(1, [], end | RawFrame.padded)], .connectionError(.protocolError)),
    ]

    private static let messages: [ConformanceCase] = [
        .init("RFC 9113 §8.1", "GET", [.get(1)], .answered([1])),
        .init(
            "RFC 9113 §8.1", "HEAD", [.headers(1, RawHPACK.request("HEAD"))], .answered([1])),
        .init(
            "RFC 9113 §8.1", "two requests at once", [.get(1), .get(3)], .answered([1, 3])),
        .init(
            "RFC 9113 §8.1", "a body with trailers",
            [.post(1), .data(1, [0]), .headers(1, RawHPACK.literal("x", "y"))], .answered([1])),
        .init(
            "RFC 9113 §8.1", "trailers without a body",
            [.post(1), .headers(1, RawHPACK.literal("x", "y"))], .answered([1])),
        .init(
            "RFC 9113 §8.1", "HEADERS after the body that do not end the stream",
            [
                .post(1), .data(1, [0]),
                .headers(1, RawHPACK.literal("x", "y"), RawFrame.endHeaders),
                .data(1, [0], end),
            ], .streamError(1, .protocolError), answerBytes: 0),
    ]
}
