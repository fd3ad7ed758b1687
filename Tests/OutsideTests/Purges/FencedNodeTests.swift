import Foundation
import Harness
import Testing

extension Outside {
    @Suite(
        "A node that may lack a purge is fenced",
        .enabled(if: NetworkNamespace.isAvailable, "namespaces need root, iproute2 and nftables"))
    struct FencedNodeTests {
        private let old = TestImage.generated(.png, byteCount: 40_000, seed: 821)
        private let new = TestImage.generated(.png, byteCount: 30_000, seed: 822)

        /// Starts three nodes and an isolated one that never reached them; all have the old image,
        /// which has since changed.
        private func edited(
            fence: String = "3s", hasStranger: Bool = false
        ) throws -> (PeerNetwork, target: String, url: String) {
            let network = try PeerNetwork(3, "--fence", fence)
            expectSoon { network.nodes.allSatisfy { $0.isCurrent(among: 3) } }
            let isEdited = network.origin.serve(old, then: new, at: ["/it"], fields: [lasting])
            let url = network.origin.url("/it")
            if hasStranger { _ = try network.add(isIsolated: true, "--join-timeout", "1s") }
            for node in network.nodes {
                #expect(try node.get(ImageRequestTarget.forURL(url), expecting: old).matches(old))
            }
            isEdited.value = true
            return (network, ImageRequestTarget.forURL(url), url)
        }

        @Test("A partitioned node revalidates once per fence period, reports it, and recovers")
        func cutOff() throws {
            let (network, target, url) = try edited()
            let node = network.nodes[2]
            try network.isolate(2)
            expectSoon { node.isFenced }
            let ready = try node.connectAdmin().get("/readyz")
            #expect(ready.status == 200 && ready.text.contains("\"fenced\":true"), "\(ready)")
            let purge = try network.nodes[0].purge("{\"url\":\"\(url)\"}", timeout: "1s")
            #expect(purge.status == 202 && !purge.isConfirmedByAll, "\(purge)")
            // Its entries may be served until the fence period ends that began with the last
            // contact.
            var first = try node.get(target)
            let isAsked = try Deadline.seconds(30).waitUntil {
                if !first.matches(new) { first = try node.get(target) }
                return first.matches(new)
            }
            #expect(isAsked && first.cacheStatus["fenced"] != nil, "\(first)")
            let asked = network.origin.requests("/it").count
            let second = try node.get(target, expecting: new)
            #expect(second.matches(new) && second.isHit, "\(second)")
            #expect(network.origin.requests("/it").count == asked)
            // It cannot know that the origin has not changed again, so it revalidates once more.
            try expectSoon {
                try node.get(target, expecting: new).cacheStatus["fwd-status"] == "304"
            }
            try network.heal()
            expectSoon(60) { !node.isFenced }
            try expectSoon(60) { try network.nodes[1].receipt(purge.name).isConfirmedByAll }
            for node in network.nodes {
                #expect(try node.get(target, expecting: new).matches(new))
            }
        }

        @Test("A new isolated node serves no entry that may be purged and issues no receipt")
        func neverMet() throws {
            let (network, target, url) = try edited(fence: "2s", hasStranger: true)
            let stranger = network.nodes[3]
            #expect(stranger.isFenced)
            let purge = try network.nodes[0].purge("{\"url\":\"\(url)\"}")
            #expect(purge.isConfirmedByAll && purge.members.count == 3, "\(purge)")
            // The origin's response from before the purge may be served for the fence period.
            try expectSoon { try stranger.get(target).matches(new) }
            for _ in 0..<20 { #expect(try stranger.get(target).matches(new)) }
            let own = try stranger.purge("{\"url\":\"\(url)\"}", timeout: "1s")
            #expect(!own.isConfirmedByAll, "\(own)")
            // It becomes a member as soon as it reaches the others.
            try network.heal()
            expectSoon(60) { stranger.isCurrent(among: 4) }
        }

        @Test("A node that is not a voter yet owns nothing")
        func ownsNothing() throws {
            let disk = try HungDisk()
            let network = try PeerNetwork(3, disk: disk)
            expectSoon { network.nodes.allSatisfy { $0.isCurrent(among: 3) } }
            // No vote is synced.
            try disk.hang(reads: false)
            let newcomer = try network.add(waits: false)
            let own = {
                try ClusterStage.members(of: network.nodes[0]).first {
                    !network.ids.contains($0.id) && $0.isConnected
                }
            }
            try expectSoon { try !newcomer.isFenced && own() != nil }
            #expect(try own()?.share == 0)
            try disk.resume()
            try newcomer.waitUntilReady()
            try expectSoon { try own().map { $0.share > 0 } == true }
        }

        @Test("A node that is not a voter yet is in receipts after its contacts restart")
        func unknownToAll() throws {
            let disk = try HungDisk()
            let network = try PeerNetwork(3, "--fence", "15s", disk: disk)
            let isEdited = network.origin.serve(
                old, then: new, at: ["/it"], hasTags: false, fields: [lasting])
            let url = network.origin.url("/it")
            expectSoon { network.nodes.allSatisfy { $0.isCurrent(among: 3) } }
            // No vote is synced, so no node becomes a voter; receipts name what is synced all the
            // same.
            try disk.hang(reads: false)
            let newcomer = try network.add()
            expectSoon { !newcomer.isFenced }
            for _ in 0..<2 {
                #expect(try newcomer.get(ImageRequestTarget.forURL(url)).matches(old))
            }
            #expect(newcomer.metric("nuthatch_members_counted") == 3)
            try network.isolate(3)
            for index in 0..<3 { try network.end(index) }
            try disk.resume()
            for index in 0..<3 { try network.begin(index, waits: false) }
            for index in 0..<3 { try network.nodes[index].waitUntilReady() }
            isEdited.value = true

            let purge = try network.nodes[0].purge("{\"url\":\"\(url)\"}", timeout: "0s")
            try expectSoon(90) { try network.nodes[0].receipt(purge.name).isConfirmedByAll }
            let response = try newcomer.get(ImageRequestTarget.forURL(url))
            #expect(response.matches(new), "\(response)")
        }

        @Test("A stopping node is in every receipt until it no longer serves any client")
        func leaving() throws {
            let network = try PeerNetwork(4, "--fence", "30s")
            let node = network.nodes[3]
            let isEdited = network.origin.serve(
                old, then: new, at: ["/it"], hasTags: false, fields: [lasting])
            let urls = (0..<600).map { network.origin.url("/it?\($0)") }
            for url in urls { #expect(try node.get(ImageRequestTarget.forURL(url)).matches(old)) }
            isEdited.value = true
            // It waits for one node's reply to its leave, and is proven current by the others.
            try network.cut([1], from: [3])
            node.terminate()
            for url in urls where node.isRunning {
                let purge = try network.nodes[0].purge("{\"url\":\"\(url)\"}", timeout: "20ms")
                guard purge.isConfirmedByAll,
                    let response = try? node.get(ImageRequestTarget.forURL(url), seconds: 1)
                else { continue }
                #expect(!response.matches(old), "\(purge): \(response)")
            }
        }

        @Test("A stopping node completes earlier requests, and remains a voter until then")
        func leavingSlowly() throws {
            let (network, _, url) = try edited()
            let node = network.nodes[2]
            let gate = Gate()
            defer { gate.open() }
            network.origin.on(
                "/slow", OriginResponse(new, fields: [lasting]).delayingHead(.gate(gate)))
            let client = try node.connect()
            let slow = ImageRequestTarget.forURL(network.origin.url("/slow"))
            try client.socket.send(HTTPConnection.request(slow))
            #expect(gate.waitForArrivals())
            node.terminate()
            expectSoon { (try? node.connect()) == nil }
            let purge = try network.nodes[0].purge("{\"url\":\"\(url)\"}")
            #expect(purge.isConfirmedByAll && purge.members.count == 3, "\(purge)")
            gate.open()
            #expect(client.readResponse(expecting: new).matches(new))
            #expect(node.waitForExit() == 0)
            try expectSoon { try network.nodes[0].purge("{\"url\":\"\(url)\"}").members.count == 2 }
        }

        @Test("A fenced node serves nothing that may be purged when the origin is unreachable")
        func originGone() throws {
            let (network, target, _) = try edited()
            let node = network.nodes[2]
            try network.isolate(2)
            expectSoon { node.isFenced }
            network.origin.on("/it", OriginResponse(nil, status: "503 Service Unavailable"))
            try expectSoon { try node.get(target).status >= 500 }
            #expect(try node.get(target).status >= 500)
            #expect(try network.nodes[0].get(target, expecting: old).isHit)
        }

        @Test("Without a fence a partitioned node serves on")
        func off() throws {
            let (network, target, _) = try edited(fence: "off")
            try network.isolate(2)
            try network.settle([[0, 1], [2]])
            let node = network.nodes[2]
            #expect(!node.isFenced)
            #expect(try node.get(target, expecting: old).isHit)
        }

        @Test("The survivor of two is fenced until the operator declares the other gone")
        func survivor() throws {
            let stage = try ClusterStage(2, "--fence", "3s")
            let image = TestImage.generated(.png, byteCount: 9_000, seed: 823)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"e\"")
            try stage.expectAll(path, image)
            let id = try ClusterStage.id(of: stage.nodes[1])
            let node = stage.nodes[0]
            for _ in 0..<2 { try stage.waitUntilHeard(by: node, from: 1) }
            stage.nodes[1].kill()
            expectSoon { node.isFenced }
            try expectSoon {
                let response = try stage.get(path, from: 0, expecting: image)
                return response.matches(image) && response.cacheStatus["fwd-status"] == "304"
            }
            let response = try node.connectAdmin().post("", to: "/admin/v1/members/\(id)/forget")
            #expect(response.status == 202, "\(response)")
            expectSoon { !node.isFenced }
            let before = stage.fetches(path)
            #expect(try stage.get(path, from: 0, expecting: image).isHit)
            #expect(stage.fetches(path) == before)
        }
    }
}
