"""Has the official SDKs of Anthropic and OpenAI call skills and files of a host.

    skills.py URL FOLDER KEY READER OTHER

FOLDER has a SKILL.md. KEY may upload and call, READER may only read, OTHER is a key of another tenant.
Each thing that holds is a line "ok …"; the first that does not ends the program.
"""

import io
import os
import pathlib
import sys
import zipfile

import anthropic
import openai
from anthropic.lib import files_from_dir

url, folder, key, reader, other = sys.argv[1:]
folder = pathlib.Path(folder)
ours = {"max_retries": 2, "timeout": 60}


def of_anthropic(key):
    return anthropic.Anthropic(base_url=url, api_key=key, **ours)


def of_openai(key):
    return openai.OpenAI(base_url=url + "/v1", api_key=key, **ours)


A, O = of_anthropic(key), of_openai(key)
BIG = os.urandom(5 << 20)


def named(name, text="", version=""):
    """The files of FOLDER under another name, and with more text."""
    files = []
    for path, content in files_from_dir(folder):
        if path.endswith("/SKILL.md"):
            content = content.replace(f"name: {folder.name}".encode(), f"name: {name}{version}".encode()) + text.encode()
        files.append((path.replace(folder.name, name, 1), content))
    assert len(files) >= 3, files
    return files


def contents(files):
    return {path.split("/", 1)[1]: content for path, content in files}


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return {n: z.read(n) for n in z.namelist()}


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for path, content in files:
            z.writestr(path, content)
    return out.getvalue()


def refused(kind, call, wants=""):
    try:
        call()
    except kind as e:
        assert wants in str(e), e
        return e
    raise AssertionError(f"it was not {kind.__name__}")


def anthropic_skills():
    S, one = A.beta.skills, named("notes")
    made = S.create(files=one, display_name="Notes")
    assert (made.id, made.type, made.display_name, made.source.type) == ("skill_notes", "skill", "notes", "custom"), made
    assert S.retrieve(made.id) == made
    first = S.versions.retrieve(made.latest_version_id, skill_id=made.id)
    assert (first.id, first.type, first.name, first.skill_id) == (made.latest_version_id, "skill_version", "notes", made.id), first
    assert first.description and first.created_at == made.created_at, first
    assert unzipped(S.versions.download(first.id, skill_id=made.id).read()) == contents(one)

    two = named("notes", "\nMore.\n")
    second = S.versions.create(made.id, files=two)
    assert second.id != first.id and S.retrieve(made.id).latest_version_id == second.id, second
    assert unzipped(S.versions.download(second.id, skill_id=made.id).read()) == contents(two)
    assert [v.id for v in S.versions.list(made.id, limit=1)] == [second.id, first.id]
    for i in range(3):
        S.create(files=named(f"more-{i}"))
    page = S.list(limit=3)
    assert len(page.data) == 3 and page.next_page.startswith("page_"), page
    assert [s.id for s in page] == ["skill_more-2", "skill_more-1", "skill_more-0", "skill_notes"], page
    assert not S.list(source="anthropic").data

    e = refused(anthropic.ConflictError, lambda: S.create(files=two), "create a version of it")
    assert e.body["error"]["type"] == "conflict_error" and e.response.headers["x-should-retry"] == "false", e.body
    refused(anthropic.ConflictError, lambda: S.versions.create(made.id, files=two), "already exists")
    refused(anthropic.BadRequestError, lambda: S.versions.create(made.id, files=named("more-0")), "keeps its name")
    assert S.versions.delete(second.id, skill_id=made.id).model_dump() == {"id": second.id, "type": "skill_version_deleted"}
    refused(anthropic.NotFoundError, lambda: S.versions.retrieve(second.id, skill_id=made.id))
    assert [v.id for v in S.versions.list(made.id)] == [first.id]
    for s in S.list():
        assert S.delete(s.id).model_dump() == {"id": s.id, "type": "skill_deleted"}
    assert not S.list().data
    refused(anthropic.NotFoundError, lambda: S.retrieve(made.id))


def openai_skills():
    S, one = O.skills, named("words", version="\nmetadata:\n  version: '1.0'")
    made = S.create(files=one)
    assert (made.id, made.object, made.name, made.default_version, made.latest_version) == ("skill_words", "skill", "words", "1.0.0", "1.0.0"), made
    assert made.description and S.retrieve(made.id) == made

    two = named("words", "\nMore.\n", version="\nmetadata:\n  version: '1.1'")
    second = S.versions.create(made.id, files=("words.zip", zipped(two), "application/zip"))
    assert (second.object, second.version, second.name, second.skill_id) == ("skill.version", "1.1.0", "words", made.id), second
    now = S.retrieve(made.id)
    assert (now.default_version, now.latest_version) == ("1.0.0", "1.1.0"), now
    assert unzipped(S.content.retrieve(made.id).read()) == contents(one)
    assert S.update(made.id, default_version="1.1.0").default_version == "1.1.0"
    assert unzipped(S.content.retrieve(made.id).read()) == contents(two)
    assert S.update(made.id, default_version="1.0.0").default_version == "1.0.0"  # back
    third = S.versions.create(made.id, default=True, files=named("words", version="\nmetadata:\n  version: '2.0'"))
    assert S.retrieve(made.id).default_version == third.version == "2.0.0"
    assert S.versions.retrieve("1.1.0", skill_id=made.id) == second
    assert unzipped(S.versions.content.retrieve("1.1.0", skill_id=made.id).read()) == contents(two)
    assert [v.version for v in S.versions.list(made.id, limit=2)] == ["2.0.0", "1.1.0", "1.0.0"]
    assert [v.version for v in S.versions.list(made.id, limit=2, order="asc")] == ["1.0.0", "1.1.0", "2.0.0"]
    for i in range(3):
        S.create(files=named(f"more-{i}", version="\nmetadata:\n  version: '2.0'"))  # deleted before with other files
    assert [s.name for s in S.list(limit=2)] == ["more-2", "more-1", "more-0", "words"]
    assert [s.name for s in S.list(limit=3, order="asc")] == ["words", "more-0", "more-1", "more-2"]

    e = refused(openai.NotFoundError, lambda: S.update(made.id, default_version="9.0.0"), "no such version")
    assert (e.type, e.code) == ("invalid_request_error", "NOT_FOUND"), e.body
    e = refused(openai.ConflictError, lambda: S.create(files=one), "exists")
    assert e.code == "CONFLICT" and e.response.headers["x-should-retry"] == "false", e.body
    e = refused(openai.BadRequestError, lambda: S.list(limit=101))
    assert e.param == "limit", e.body
    gone = S.versions.delete("1.1.0", skill_id=made.id)
    assert (gone.id, gone.object, gone.version, gone.deleted) == (second.id, "skill.version.deleted", "1.1.0", True), gone
    refused(openai.NotFoundError, lambda: S.versions.content.retrieve("1.1.0", skill_id=made.id))
    for s in S.list():
        gone = S.delete(s.id)
        assert (gone.id, gone.object, gone.deleted) == (s.id, "skill.deleted", True), gone
    assert not S.list().data


def anthropic_files():
    F = A.beta.files
    made = [F.upload(file=("big.bin", BIG))] + [F.upload(file=(f"{i}.txt", str(i).encode())) for i in range(4)]
    big = made[0]
    assert (big.filename, big.size_bytes, big.type, big.downloadable) == ("big.bin", len(BIG), "file", True), big
    assert F.retrieve_metadata(big.id) == big
    assert F.download(big.id).read() == BIG
    page = F.list(limit=2)
    assert len(page.data) == 2 and page.next_page, page
    assert [f.filename for f in page] == ["3.txt", "2.txt", "1.txt", "0.txt", "big.bin"], page
    assert [f.id for f in F.list(ids=[big.id, "file_" + "0" * 64])] == [big.id]
    refused(anthropic.BadRequestError, lambda: F.upload(file=("a", b"a"), expires_in_seconds=3600), "not supported")
    for f in made:
        assert F.delete(f.id).model_dump() == {"id": f.id, "type": "file_deleted"}
    assert not F.list().data
    refused(anthropic.NotFoundError, lambda: F.download(big.id))


def openai_files():
    F = O.files
    made = [F.create(file=("big.bin", BIG), purpose="user_data")] + [F.create(file=(f"{i}.txt", str(i).encode()), purpose="assistants") for i in range(4)]
    big = made[0]
    assert (big.filename, big.bytes, big.object, big.purpose, big.status) == ("big.bin", len(BIG), "file", "user_data", "processed"), big
    assert big.expires_at > big.created_at and F.retrieve(big.id) == big
    assert F.content(big.id).read() == BIG
    names = ["big.bin", "0.txt", "1.txt", "2.txt", "3.txt"]
    page = F.list(limit=2, order="asc")
    assert len(page.data) == 2 and page.has_more, page
    assert [f.filename for f in page] == names, page
    assert [f.filename for f in F.list(limit=3)] == names[::-1]
    assert len(F.list().data) == 5 and not F.list(purpose="batch").data
    e = refused(openai.BadRequestError, lambda: F.create(file=("a", b"a"), purpose="fine-tune"), "user_data or assistants")
    assert e.param == "purpose", e.body
    refused(openai.BadRequestError, lambda: F.create(file=("a", b"a"), purpose="user_data", expires_after={"anchor": "created_at", "seconds": 3600}), "not supported")
    for f in made:
        gone = F.delete(f.id)
        assert (gone.id, gone.object, gone.deleted) == (f.id, "file", True), gone
    assert not F.list().data
    refused(openai.NotFoundError, lambda: F.content(big.id))


def wrong_keys():
    skill, file = A.beta.skills.create(files=named("secret")), A.beta.files.upload(file=("secret.txt", b"secret"))
    version = skill.latest_version_id
    for of, kinds in (of_anthropic, anthropic), (of_openai, openai):
        skills = lambda c: c.beta.skills if kinds is anthropic else c.skills
        assert refused(kinds.AuthenticationError, lambda: skills(of("osk_wrong")).list(), "credentials")
        read = skills(of(reader))
        assert [s.id for s in read.list()] == [skill.id]
        more = named("secret", "\nMore.\n")
        for call in lambda: read.create(files=more), lambda: read.versions.create(skill.id, files=more), lambda: read.delete(skill.id), lambda: read.versions.delete(version, skill_id=skill.id):
            refused(kinds.PermissionDeniedError, call, "missing scope skills:upload")
        theirs = skills(of(other))
        assert not theirs.list().data
        for call in (
            lambda: theirs.retrieve(skill.id), lambda: theirs.delete(skill.id), lambda: theirs.versions.list(skill.id), lambda: theirs.versions.retrieve(version, skill_id=skill.id),
            lambda: theirs.versions.delete(version, skill_id=skill.id), lambda: theirs.versions.create(skill.id, files=more),
        ):
            of_ours = refused(kinds.NotFoundError, call)
        nothing = refused(kinds.NotFoundError, lambda: theirs.versions.create("skill_nothing", files=more))
        assert [e.body["error"] if kinds is anthropic else e.body for e in (of_ours, nothing)].count(of_ours.body["error"] if kinds is anthropic else of_ours.body) == 2
    a, o = of_anthropic(other), of_openai(other)
    for call in lambda: a.beta.files.retrieve_metadata(file.id), lambda: a.beta.files.download(file.id), lambda: a.beta.files.delete(file.id):
        refused(anthropic.NotFoundError, call)
    theirs = "file-" + file.id.removeprefix("file_")
    for call in (
        lambda: o.files.retrieve(theirs), lambda: o.files.content(theirs), lambda: o.files.delete(theirs), lambda: o.skills.content.retrieve(skill.id),
        lambda: o.skills.versions.content.retrieve(version, skill_id=skill.id), lambda: o.skills.update(skill.id, default_version=version),
    ):
        refused(openai.NotFoundError, call)
    refused(anthropic.NotFoundError, lambda: a.beta.skills.versions.download(version, skill_id=skill.id))
    refused(anthropic.PermissionDeniedError, lambda: of_anthropic(reader).beta.files.list(), "missing scope skills:invoke")
    refused(openai.PermissionDeniedError, lambda: of_openai(reader).files.create(file=("a", b"a"), purpose="user_data"), "missing scope skills:invoke")
    assert not a.beta.files.list().data and not o.files.list().data
    assert A.beta.files.download(file.id).read() == b"secret"
    assert A.beta.skills.retrieve(skill.id) == skill
    refused(openai.NotFoundError, lambda: O.models.list())  # no other calls


for check in anthropic_skills, openai_skills, anthropic_files, openai_files, wrong_keys:
    check()
    print("ok", check.__name__)
