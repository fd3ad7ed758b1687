import Ground
import HTTPRules

/// The value of traceparent, and after the first line feed that of tracestate.
///
/// Invariants: the forwarded traceparent has the trace's id and is read again as the same; a state
/// is short, and is forwarded again unchanged; an adopted id is printable.
func fuzzTrace(_ input: [UInt8]) {
    let lineFeed = input.firstIndex(of: 10) ?? input.count
    let parent = Array(input[..<lineFeed])
    let state = Array(input.dropFirst(lineFeed + 1))
    if let id = RequestID(parent) {
        precondition(id.text == parent && parent.allSatisfy { 0x21...0x7E ~= $0 })
    }
    let passed = TraceState.parse(state)
    precondition(passed.count <= TraceState.bytesMax && TraceState.parse(passed) == passed)
    guard let context = TraceContext(parent: parent, state: state) else { return }
    precondition(context.state == passed)
    let written = context.traceparent(span: 1)
    precondition(written.count == TraceContext.parentBytes && written[3..<35] == parent[3..<35])
    let again = TraceContext(parent: written, state: passed)
    precondition(again?.traceID == context.traceID && again?.flags == context.flags)
    precondition(again?.parentID == 1 && again?.state == passed)
}
