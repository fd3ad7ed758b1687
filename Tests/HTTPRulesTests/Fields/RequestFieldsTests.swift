import HTTPRules
import Testing

@Suite struct RequestFieldsTests {
    private func takesTrailers(_ fields: [String]) -> Bool {
        let head = ResponseHead(status: 200, fields: fields)
        return RequestFields(bytes: head.bytes, lines: head.lines).acceptsTrailers
    }

    @Test(
        "RFC 9110 §10.1.4: TE with trailers accepts trailer fields",
        arguments: [
            ["TE: trailers"], ["te: TRAILERS"], ["TE: trailers;q=1"], ["TE: trailers ; q=0.5"],
            ["TE: gzip, Trailers"], ["TE: gzip;q=0.5,trailers,deflate"], ["TE: ,, \ttrailers\t ,"],
            ["TE: gzip", "Accept: a/b", "TE: trailers"], ["TE: a b, trailers"],
            ["TE: trailers, trailers"],
        ])
    func taken(fields: [String]) {
        #expect(takesTrailers(fields))
    }

    @Test(
        "Any other TE does not accept trailer fields",
        arguments: [
            [], ["TE:"], ["TE: , ,"], ["TE: gzip"], ["TE: trailer"], ["TE: trailers2"],
            ["TE: xtrailers"], ["TE: trail ers"], ["TE: trailers x"], ["TE: trailers=1"],
            ["TE: \"trailers\""], ["TE: gzip;trailers"], ["TE: ;trailers"], ["TE: ;"],
            ["Trailer: trailers"], ["Trailers: trailers"], ["TEE: trailers"],
        ])
    func notTaken(fields: [String]) {
        #expect(!takesTrailers(fields))
    }
}
