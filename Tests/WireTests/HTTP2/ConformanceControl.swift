import Wire

/// SETTINGS, PING, GOAWAY, RST_STREAM, PRIORITY and PUSH_PROMISE (RFC 9113 §6.3 to §6.8, §7, §8.4).
enum ConformanceControl {
    static let all = settings + values + pings + resets + priorities

    private static let settings: [ConformanceCase] = [
        .init("RFC 9113 §6.5", "SETTINGS are acknowledged", [.settings()], .frame(.settingsAck)),
        .init(
            "RFC 9113 §6.5", "an acknowledgement nobody waits for", [.settingsAck],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.5", "an acknowledgement with a payload",
            [.settings([(3, 1)]).with(flags: RawFrame.ack)], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.5", "SETTINGS on a stream",
            [.settings([(3, 1)]).with(stream: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.5", "SETTINGS of a length that is no multiple of 6",
            [.settings().with(payload: [0, 3, 0])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.5.3", "of a value given twice the last counts",
            [.settings([(4, 100), (4, 1)]), .get(1)], .data(1, [1])),
    ]

    private static let values: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.5.2", "ENABLE_PUSH of 2",
            [.settings([(2, 2)])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.5.2", "ENABLE_PUSH of 1", [.settings([(2, 1)])], .frame(.settingsAck)),
        .init(
            "RFC 9113 §6.5.2", "INITIAL_WINDOW_SIZE of 2^31",
            [.settings([(4, 0x8000_0000)])], .connectionError(.flowControlError)),
        .init(
            "RFC 9113 §6.5.2", "INITIAL_WINDOW_SIZE of 2^31 - 1",
            [.settings([(4, 0x7FFF_FFFF)])], .frame(.settingsAck)),
        .init(
            "RFC 9113 §6.5.2", "MAX_FRAME_SIZE of 2^14 - 1",
            [.settings([(5, 16_383)])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.5.2", "MAX_FRAME_SIZE of 2^24",
            [.settings([(5, 1 << 24)])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.5.2", "MAX_FRAME_SIZE of 2^24 - 1",
            [.settings([(5, 1 << 24 - 1)])], .frame(.settingsAck)),
        .init(
            "RFC 9113 §6.5.2", "HEADER_TABLE_SIZE of 0",
            [.settings([(1, 0)]), .get(1)], .answered([1])),
        .init(
            "RFC 9113 §6.5.2", "HEADER_TABLE_SIZE of 2^32 - 1",
            [.settings([(1, .max)]), .get(1)], .answered([1])),
        .init(
            "RFC 9113 §6.5.2", "a setting that is not known",
            [.settings([(0xFF, 1)])], .frame(.settingsAck)),
        .init(
            "RFC 9113 §6.5.2", "MAX_CONCURRENT_STREAMS of 0 binds only the server",
            [.settings([(3, 0)]), .get(1)], .answered([1])),
        .init(
            "RFC 9218 §2.1", "NO_RFC7540_PRIORITIES of 2",
            fromStart: RawFrame.preface + RawFrame.settings([(9, 2)]).bytes,
            .connectionError(.protocolError)),
        .init(
            "RFC 9218 §2.1", "NO_RFC7540_PRIORITIES that changes",
            [.settings([(9, 1)])], .connectionError(.protocolError)),
    ]

    private static let pings: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.7", "PING is answered with the same bytes",
            [.ping("01234567")], .frame(.ping("01234567", RawFrame.ack))),
        .init(
            "RFC 9113 §6.7", "the answer to a PING that was not sent",
            [.ping("01234567", RawFrame.ack)], .ignored),
        .init(
            "RFC 9113 §6.7", "PING on a stream",
            [.ping().with(stream: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.7", "PING of 7 bytes", [.ping("7 bytes")],
            .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.7", "PING of 9 bytes", [.ping("9 bytes..")],
            .connectionError(.frameSizeError)),
        .init("RFC 9113 §6.7", "PING of no byte", [.ping("")], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.8", "GOAWAY on a stream",
            [.goAway().with(stream: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.8", "GOAWAY of 7 bytes",
            [.goAway().with(payload: [0, 0, 0, 0, 0, 0, 0])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.8", "a request before GOAWAY is answered",
            [.get(1), .goAway()], .answeredLast([1])),
        .init(
            "RFC 9113 §7", "GOAWAY with an unknown code",
            [.get(1), .goAway(0, 0xFF)], .answeredLast([1])),
        .init(
            "RFC 9113 §8.4", "PUSH_PROMISE from a client",
            [.get(1), RawFrame(type: 5, flags: 4, stream: 1, payload: [0, 0, 0, 2])],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §8.4", "PUSH_PROMISE on an idle stream",
            [RawFrame(type: 5, flags: 4, stream: 3, payload: [0, 0, 0, 2] + RawHPACK.request())],
            .connectionError(.protocolError)),
    ]

    private static let resets: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.4", "RST_STREAM ends its stream only",
            [.post(1), .reset(1), .get(3)], .answered([3])),
        .init(
            "RFC 9113 §6.4", "RST_STREAM on stream 0", [.reset(0)], .connectionError(.protocolError)
        ),
        .init(
            "RFC 9113 §6.4", "RST_STREAM on an idle stream",
            [.reset(1)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.4", "RST_STREAM of 3 bytes",
            [.post(1), .reset(1).with(payload: [0, 0, 0])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.4", "RST_STREAM of 5 bytes",
            [.post(1), .reset(1).with(payload: [0, 0, 0, 0, 8])],
            .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §7", "RST_STREAM with an unknown code",
            [.post(1), .reset(1, 0xFF), .get(3)], .answered([3])),
    ]

    private static let priorities: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.3", "PRIORITY on stream 0",
            [.priority(0, on: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.3", "PRIORITY of 4 bytes",
            [.priority(1, on: 0).with(payload: [0, 0, 0, 0])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.3", "PRIORITY of 6 bytes",
            [.priority(1, on: 0).with(payload: [0, 0, 0, 0, 0, 0])],
            .connectionError(.frameSizeError)),
        .init("RFC 9113 §6.3", "PRIORITY on an idle stream", [.priority(1, on: 0)], .ignored),
        .init(
            "RFC 9113 §6.3", "PRIORITY of an idle stream leaves lower ids open",
            [.priority(9, on: 0), .get(1)], .answered([1])),
        .init(
            "RFC 9113 §6.3", "PRIORITY on an open stream",
            [.post(1), .priority(1, on: 0), .data(1, [], RawFrame.endStream)], .answered([1])),
        .init(
            "RFC 9113 §6.3", "PRIORITY on a closed stream",
            turns: [[.get(1)], [.priority(1, on: 0)], [.get(3)]], .answered([1, 3])),
        .init(
            "RFC 9113 §6.3", "an exclusive dependency",
            [.priority(1, on: 0x8000_0003, weight: 255), .get(1)], .answered([1])),
        .init(
            "RFC 7540 §5.3.1", "PRIORITY of a stream that depends on itself",
            [.priority(1, on: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 7540 §5.3.1", "HEADERS of a stream that depends on itself",
            [.headers(1, [0, 0, 0, 1, 9] + RawHPACK.request(), 0x25)],
            .connectionError(.protocolError)),
    ]
}
