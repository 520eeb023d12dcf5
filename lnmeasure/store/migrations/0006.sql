-- From schema 5 to 6: a view more, path_by_seed, which every copy is given. Tables stay as they are.
SELECT 1;
