import Ground
import HTTPRules
import Testing

private func control(_ fields: String...) -> RequestCacheControl {
    let head = ResponseHead(status: 200, fields: fields)
    return RequestCacheControl(lines: head.lines, in: head.bytes.span)
}

@Suite struct RequestCacheControlTests {
    @Test(
        "RFC 9111 §5.2.1: a request without known directives is unrestricted",
        arguments: [
            [], ["Accept: */*"], ["Cache-Control: "], ["Cache-Control: foo, bar=1"],
            ["Pragma: foo"], ["Cache-Control: no-transform"], ["Cache-Control: public"],
            ["Pragma: no-cache", "Cache-Control: foo"], ["X: no-cache"],
            ["Cache-Control: \"no-cache\""], ["Pragma: no-cache=1"], ["Pragma: no-cached"],
        ])
    func empty(fields: [String]) {
        let head = ResponseHead(status: 200, fields: fields)
        let found = RequestCacheControl(lines: head.lines, in: head.bytes.span)
        #expect(found == .none)
        #expect(found.isEmpty)
    }

    @Test("RFC 9111 §5.2.1.1 to §5.2.1.3: request directives with a number")
    func numbers() {
        let found = control(
            "Cache-Control: max-age=1, max-stale=2", "cache-control: MIN-FRESH=\"3\"")
        #expect(found.maxAge == .seconds(1))
        #expect(found.maxStale == .seconds(2))
        #expect(found.minFresh == .seconds(3))
        #expect(!found.isEmpty && !found.isNoCache && !found.isNoStore && !found.isOnlyIfCached)
        #expect(control("Cache-Control: max-stale").maxStale == .seconds(DeltaSeconds.max))
        #expect(control("Cache-Control: max-age=x").maxAge == .zero)
        #expect(control("Cache-Control: max-age=5, max-age=9").maxAge == .seconds(5))
        #expect(control("Cache-Control: max-age=99999999999").maxAge == .seconds(DeltaSeconds.max))
        #expect(control("Cache-Control: stale-if-error=4").staleIfError == .seconds(4))
    }

    @Test("RFC 9111 §5.2.1.4 to §5.2.1.7: request directives without a number")
    func words() {
        #expect(control("Cache-Control: no-cache").isNoCache)
        #expect(control("Cache-Control: no-cache=\"a\"").isNoCache)
        #expect(control("Cache-Control: NO-STORE").isNoStore)
        #expect(control("Cache-Control: only-if-cached").isOnlyIfCached)
        let all = control("Cache-Control: no-cache, no-store, only-if-cached")
        #expect(all.isNoCache && all.isNoStore && all.isOnlyIfCached && !all.isEmpty)
    }

    @Test("RFC 9111 §5.4: Pragma counts only without Cache-Control, in any order")
    func pragma() {
        #expect(control("Pragma: no-cache").isNoCache)
        #expect(control("Pragma: foo, No-Cache").isNoCache)
        #expect(control("Pragma: foo", "Pragma: no-cache").isNoCache)
        #expect(!control("Pragma: no-cache", "Cache-Control: max-age=5").isNoCache)
        #expect(!control("Cache-Control: max-age=5", "Pragma: no-cache").isNoCache)
    }
}
