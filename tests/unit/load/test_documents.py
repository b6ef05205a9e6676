import pytest

from twin.errors import InputError
from twin.load.documents import parse_yaml, read_mapping


def test_exponent_without_a_dot_is_a_number():
    assert parse_yaml("a: 1e3\nb: -2E-2\nc: 12", "x") == {"a": 1000.0, "b": -0.02, "c": 12}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\na: 2", "x, line 2: is not valid YAML: key 'a' stands twice"),
        ("a: [1", "x, line 1: is not valid YAML"),
        ("a: &n 1\nb: *n", "aliases"),
        ("1.5: a", "key 1.5 is neither text nor a whole number"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: " + "[" * 3000, "not valid YAML"),
        ("a: [" + "1," * 200_001 + "]", "too many nodes"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
    ],
)
def test_bad_yaml_is_one_line(text, says):
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "x")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds nothing"),
        (b"- 1\n", "holds list"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a" * (4 * 2**20 + 1), "larger than 4 MiB"),
    ],
)
def test_bad_file_is_named(tmp_path, content, says):
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_mapping(path, "scenario file")
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such scenario file"):
        read_mapping(tmp_path / "none.yaml", "scenario file")
    with pytest.raises(InputError, match="is a folder"):
        read_mapping(tmp_path, "scenario file")


def test_byte_order_mark_is_accepted(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_mapping(path, "scenario file") == {"a": 1}
